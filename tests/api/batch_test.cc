// Tests training and evaluation on single batches, and a program's own loop over the batches of a
// dataset.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/programs.h"

namespace {

void ExpectNear(const tj::CompiledModel& model, const tj::CompiledModel& expected) {
  const auto values = WeightsOf(model), wanted = WeightsOf(expected);
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t v = 0; v < values.size(); ++v) {
    for (size_t i = 0; i < values[v].size(); ++i)
      EXPECT_NEAR(values[v][i], wanted[v][i], 1e-5) << v << " " << i;
  }
}

tj::Session SessionOf(const tj::Strategy& strategy) {
  return tj::Session(strategy, {.threads = 2});
}

TEST(Step, StepsOverTheBatchesAreAnEpochOfFit) {
  const tj::data::Arrays points = Points(150);  // the last batch is smaller
  for (const tj::Strategy& strategy : {tj::Strategy::OneDevice(), tj::Strategy::Mirrored(2)}) {
    const tj::Session session = SessionOf(strategy);
    tj::CompiledModel fitted = session.Compile(Classifier(), Options()).value();
    const tj::History history = fitted.Fit(points, Quietly(1)).value();
    tj::CompiledModel stepped = session.Compile(Classifier(), Options()).value();
    double loss = 0;
    int64_t examples = 0;
    for (const tj::Batch& batch : session.Distribute(points).value()) {
      const tj::BatchReport report = stepped.Step(batch).value();
      EXPECT_EQ(report.metrics["loss"], report.loss);
      EXPECT_TRUE(report.metrics.has("accuracy"));
      loss += report.loss * static_cast<double>(report.examples);
      examples += report.examples;
    }
    EXPECT_EQ(examples, 150);
    EXPECT_NEAR(loss / 150, history.values.at("loss")[0], 1e-5);
    EXPECT_EQ(stepped.step(), fitted.step());
    ExpectNear(stepped, fitted);
  }
}

TEST(Step, GoesOnWithTheValuesThatOtherFunctionsSet) {
  const tj::data::Arrays points = Points(64);
  tj::CompiledModel one = Compiled(), other = Compiled();
  one.Step(points).value();
  const tj::CompiledModel copy = one;
  EXPECT_EQ(copy.step(), 1) << "a copy has the newest values";
  one.Fit(points, Quietly(1)).value();
  one.Step(points).value();
  other.Step(points).value();
  other.Fit(points, Quietly(1)).value();
  tj::CompiledModel third = other;
  third.Step(points).value();
  ExpectNear(third, one);
  EXPECT_EQ(third.step(), one.step());
  EXPECT_EQ(copy.step(), 1);
}

TEST(Step, NumbersThatAreNotFiniteChangeNothing) {
  tj::CompiledModel model = Compiled();
  tj::data::Arrays points = Points(8);
  model.Step(points).value();
  const auto before = WeightsOf(model);
  tj::CompiledModel large = Compiled();
  std::map<std::string, tj::Tensor> weights;
  for (auto& [name, tensor] : large.Weights().value()) weights[name] = tensor;
  weights.at("logits/kernel").float32()[0] = NAN;
  large.SetWeights(weights).value();
  const auto report = large.Step(points);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("not finite"), std::string::npos) << report.status();
  EXPECT_EQ(large.step(), 0);
  EXPECT_EQ(WeightsOf(large)[0], WeightsOf(Compiled())[0]);
  EXPECT_EQ(WeightsOf(model), before);
}

TEST(Step, TakesTheLearningRateThatFitHasSet) {
  const tj::data::Arrays points = Points(32);
  tj::CompiledModel model = Compiled();
  model.Step(points).value();
  tj::FitOptions rests = Quietly(1);
  rests.callbacks = {tj::LearningRateScheduler{[](int64_t, double) { return 0.0; }}};
  model.Fit(points, rests).value();
  const auto before = WeightsOf(model);
  model.Step(points).value();
  EXPECT_EQ(WeightsOf(model), before);
  EXPECT_EQ(model.step(), 3);
}

// Returns a batch of ids, which must be below 4.
tj::Batch Ids(const std::vector<int32_t>& ids) {
  const auto count = static_cast<int64_t>(ids.size());
  return {.x = tj::Tensor::Of({count, 1}, ids).value(),
          .y = tj::Tensor(tj::DType::kFloat32, {count, 1})};
}

TEST(Step, GoesOnAfterABatchWithAnError) {
  const tj::Model table = tj::Sequential({tj::Input{.shape = {1}, .dtype = "int32"},
                                          tj::Embedding{.input_dim = 4, .output_dim = 2},
                                          tj::Flatten{}, tj::Dense{.units = 1}});
  const tj::CompileOptions how = {.optimizer = tj::Adam{.learning_rate = 0.1},
                                  .loss = "mean_squared_error"};
  for (const tj::Strategy& strategy : {tj::Strategy::OneDevice(), tj::Strategy::Mirrored(2)}) {
    const tj::Session session = SessionOf(strategy);
    tj::CompiledModel model = session.Compile(table, how).value(),
                      expected = session.Compile(table, how).value();
    EXPECT_FALSE(model.Step(Ids({0, 1, 9, 3})).ok());
    for (const auto& ids : {std::vector<int32_t>{0, 1, 2, 3}, std::vector<int32_t>{3, 3, 1, 0}}) {
      const auto report = model.Step(Ids(ids));
      ASSERT_TRUE(report.ok()) << report.status();
      expected.Step(Ids(ids)).value();
      EXPECT_FALSE(model.Step(Ids({9, 1, 2, 3})).ok());
      EXPECT_EQ(model.step(), expected.step());
    }
    ExpectNear(model, expected);
  }
}

TEST(Step, ModelsInFloat16AreRefused) {
  const tj::Session session = SessionOf(tj::Strategy::OneDevice());
  const tj::data::Arrays points = Points(8);
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    tj::CompiledModel model =
        session.Compile(Classifier().WithDTypePolicy(policy), Options()).value();
    EXPECT_EQ(model.Step(points).status().code(), policy == std::string("mixed_float16")
                                                      ? tj::StatusCode::kUnimplemented
                                                      : tj::StatusCode::kOk);
  }
}

TEST(TrainOnBatch, ReportsAllBatchesSinceResetMetrics) {
  const tj::data::Arrays points = Points(32);
  tj::CompiledModel model = Compiled();
  const double before = model.Evaluate(points).value()["loss"];
  EXPECT_NEAR(model.TestOnBatch(points).value()["loss"], before, 1e-6);
  const tj::Metrics first = model.TrainOnBatch(points).value();
  EXPECT_NEAR(first["loss"], before, 1e-6) << "the loss before the update, and of TestOnBatch";
  const double after = model.Evaluate(points).value()["loss"];
  EXPECT_LT(after, before);
  EXPECT_EQ(model.step(), 1);
  const tj::Metrics second = model.TrainOnBatch(points).value();
  EXPECT_NEAR(second["loss"], after, 1e-6) << "Evaluate has reset the metrics";
  const double last = model.TestOnBatch(points).value()["loss"];
  EXPECT_LT(last, after);
  model.ResetMetrics();
  EXPECT_NEAR(model.TestOnBatch(points).value()["loss"], 2 * last - after, 1e-6)
      << "the mean of the two batches was reported before";
  EXPECT_EQ(model.step(), 2);
}

TEST(TrainOnBatch, ClassWeightsAreThoseOfFit) {
  const tj::data::Arrays points = Points(32);
  tj::CompiledModel fitted = Compiled(), stepped = Compiled();
  tj::FitOptions how = Quietly(1);
  how.shuffle = false;
  how.class_weight = {{1, 5}};
  fitted.Fit(points, how).value();
  stepped.TrainOnBatch(points, {{1, 5}}).value();
  ExpectNear(stepped, fitted);
}

TEST(TrainOnBatch, ReportsWhatDoesNotFit) {
  tj::CompiledModel model = Compiled();
  const auto no_labels = model.TrainOnBatch({.x = Points(4).x});
  EXPECT_EQ(no_labels.status().code(), tj::StatusCode::kInvalidArgument);
  const auto empty = model.TrainOnBatch(
      {.x = tj::Tensor(tj::DType::kFloat32, {0, 2}), .y = tj::Tensor(tj::DType::kInt64, {0})});
  EXPECT_FALSE(empty.ok());
  tj::CompiledModel without =
      tj::Session(tj::Strategy::OneDevice()).Compile(Classifier(), {}).value();
  EXPECT_NE(without.TrainOnBatch(Points(4)).status().message().find("loss"), std::string::npos);
}

TEST(Distribute, GivesEachExampleOncePerEpoch) {
  const tj::Session session(tj::Strategy::OneDevice());
  tj::Tensor numbers(tj::DType::kInt32, {10, 1});
  for (size_t i = 0; i < 10; ++i) numbers.int32()[i] = static_cast<int32_t>(i);
  const tj::Dataset data = tj::data::Arrays{.inputs = {{"number", numbers}}};
  tj::Batches batches =
      session.Distribute(data, {.batch_size = 4, .shuffle = false, .epochs = 2}).value();
  EXPECT_EQ(batches.batches_per_epoch(), 3);
  std::vector<int32_t> seen;
  for (const tj::Batch& batch : batches) {
    EXPECT_FALSE(batch.x.present());
    const tj::Tensor array = batch.inputs.at("number");
    seen.insert(seen.end(), array.int32().begin(), array.int32().end());
  }
  EXPECT_EQ(seen,
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(batches.Next().value().has_value());
  int64_t whole = 0;
  for (const tj::Batch& batch :
       session.Distribute(data, {.batch_size = 4, .drop_remainder = true}).value())
    whole += batch.inputs.at("number").shape()[0];
  EXPECT_EQ(whole, 8);
}

TEST(Distribute, ScaledInputsBecomeFloats) {
  tj::Tensor bytes(tj::DType::kUInt8, {2, 1});
  bytes.uint8()[1] = 255;
  const tj::Dataset data = tj::data::Arrays{.x = bytes, .y = bytes, .scale = 1.0 / 255};
  tj::Batches batches =
      tj::Session(tj::Strategy::OneDevice()).Distribute(data, {.shuffle = false}).value();
  const tj::Batch batch = *batches.Next().value();
  EXPECT_EQ(batch.x.float32()[1], 1);
  EXPECT_EQ(batch.y.uint8()[1], 255);
}

TEST(Distribute, ReportsWrongOptionsAndData) {
  const tj::Session session(tj::Strategy::OneDevice());
  const tj::data::Arrays points = Points(4);
  EXPECT_NE(session.Distribute(points, {.batch_size = 0}).status().message().find("batch_size"),
            std::string::npos);
  EXPECT_NE(session.Distribute(points, {.epochs = 0}).status().message().find("epochs"),
            std::string::npos);
  EXPECT_NE(session.Distribute(tj::Dataset()).status().message().find("no inputs"),
            std::string::npos);
  EXPECT_FALSE(session.Distribute(tj::data::Idx{.images = "/nowhere", .labels = "/none"}).ok());
}

}  // namespace
