// Tests the epochs of Fit: their steps, validations and results.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/api/programs.h"

namespace {

TEST(StepsPerEpoch, DividesTheSameStepsIntoOtherEpochs) {
  const tj::Dataset train = Points(96);  // three batches
  tj::CompiledModel whole = Compiled(), parts = Compiled();
  ASSERT_TRUE(whole.Fit(train, Quietly(4)).ok());
  tj::FitOptions options = Quietly(3);
  options.steps_per_epoch = 2;
  const auto first = parts.Fit(train, options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->epoch, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(parts.step(), 6);
  options.initial_epoch = 3;
  options.epochs = 6;
  ASSERT_TRUE(parts.Fit(train, options).ok());
  EXPECT_EQ(parts.step(), 12);
  EXPECT_EQ(WeightsOf(parts), WeightsOf(whole));
}

TEST(StepsPerEpoch, MayDifferFromThatOfAnEarlierFit) {
  const tj::Dataset train = Points(96);  // three batches
  tj::CompiledModel whole = Compiled(), parts = Compiled();
  ASSERT_TRUE(whole.Fit(train, Quietly(4)).ok());
  tj::FitOptions shorter = Quietly(1);
  shorter.steps_per_epoch = 2;
  ASSERT_TRUE(parts.Fit(train, Quietly(2)).ok());
  ASSERT_TRUE(parts.Fit(train, shorter).ok());
  shorter.epochs = 2;
  ASSERT_TRUE(parts.Fit(train, shorter).ok());
  EXPECT_EQ(parts.step(), 12);
  EXPECT_EQ(WeightsOf(parts), WeightsOf(whole));
  // In the opposite order, the three short epochs of two batches each complete two passes over the
  // data, so the next Fit starts with the third pass.
  tj::CompiledModel again = Compiled();
  shorter.epochs = 3;
  ASSERT_TRUE(again.Fit(train, shorter).ok());
  ASSERT_TRUE(again.Fit(train, Quietly(2)).ok());
  EXPECT_EQ(WeightsOf(again), WeightsOf(whole));
}

TEST(Fit, BeginsWithANewPassIfTheSizeOfTheBatchesHasChanged) {
  const tj::Dataset train = Points(96);
  tj::CompiledModel counted = Compiled(), stated = Compiled();
  ASSERT_TRUE(counted.Fit(train, Quietly(1)).ok());
  ASSERT_TRUE(stated.Fit(train, Quietly(1)).ok());
  tj::FitOptions options = Quietly(1);
  options.batch_size = 48;
  ASSERT_TRUE(counted.Fit(train, options).ok());
  options.epochs = 2;
  options.initial_epoch = 1;
  ASSERT_TRUE(stated.Fit(train, options).ok());
  EXPECT_EQ(WeightsOf(counted), WeightsOf(stated));
}

TEST(Fit, RefusesAnInitialEpochBeyondAllBatches) {
  tj::FitOptions options = Quietly(4'000'000'001, 4'000'000'000);
  options.steps_per_epoch = 4'000'000'000;
  EXPECT_EQ(Compiled().Fit(Points(96), options).status().message(),
            "initial_epoch: 4000000000 epochs of 4000000000 batches are more than 2^53 batches; "
            "use a smaller number");
}

TEST(StepsPerEpoch, MayExceedTheExamples) {
  tj::CompiledModel model = Compiled();
  tj::FitOptions options = Quietly(2);
  options.steps_per_epoch = 7;
  ASSERT_TRUE(model.Fit(Points(96), options).ok());
  EXPECT_EQ(model.step(), 14);
}

TEST(ValidationSplit, EvaluatesTheLastExamples) {
  const tj::data::Arrays all = Points(100);
  // Divide the points into the first 75 and the last 25.
  const auto part = [&](int64_t begin, int64_t end) {
    std::vector<float> x(all.x.float32().begin() + 2 * begin, all.x.float32().begin() + 2 * end);
    std::vector<int64_t> y(all.y.int64().begin() + begin, all.y.int64().begin() + end);
    return tj::data::Arrays{.x = tj::Tensor::Of({end - begin, 2}, x).value(),
                            .y = tj::Tensor::Of({end - begin}, y).value()};
  };
  tj::CompiledModel split = Compiled(), given = Compiled();
  tj::FitOptions options = Quietly(2);
  options.validation_split = 0.25;
  const auto got = split.Fit(all, options);
  ASSERT_TRUE(got.ok()) << got.status();
  const tj::Dataset last = part(75, 100);
  options = Quietly(2);
  options.validation = &last;
  const auto expected = given.Fit(part(0, 75), options);
  EXPECT_EQ(got->values, expected.value().values);
  EXPECT_EQ(WeightsOf(split), WeightsOf(given));
}

TEST(ValidationSplit, NeedsArraysAndTwoParts) {
  const auto error = [](const tj::Dataset& train, double split, const tj::Dataset* validation) {
    tj::FitOptions options = Quietly(1);
    options.validation_split = split;
    options.validation = validation;
    return Compiled().Fit(train, options).status().message();
  };
  const tj::Dataset points = Points(10);
  EXPECT_EQ(error(points, 1, nullptr), "validation_split: expected 0 to below 1, got 1");
  EXPECT_NE(error(points, 0.95, nullptr).find("leaves one of the two parts empty"),
            std::string::npos);
  EXPECT_NE(error(points, 0.5, &points).find("got both"), std::string::npos);
  EXPECT_NE(error(tj::data::Csv{.file = "points.csv"}, 0.5, nullptr).find("only arrays in memory"),
            std::string::npos);
}

TEST(ValidationSteps, LimitTheValidation) {
  const tj::Dataset train = Points(32), test = Points(96), first = Points(64);
  tj::CompiledModel model = Compiled();
  tj::FitOptions options = Quietly(1);
  options.validation = &test;
  options.validation_steps = 2;
  const auto history = model.Fit(train, options);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_DOUBLE_EQ(history->values.at("val_loss")[0], model.Evaluate(first).value()["loss"]);
}

TEST(OnBatchBegin, PrecedesEachStep) {
  std::string calls;
  tj::FitOptions options = Quietly(2);
  options.callbacks = {tj::LambdaCallback{
      .on_batch_begin =
          [&](tj::FitControl& run, int64_t batch) {
            calls += "b" + std::to_string(batch) + "@" + std::to_string(run.step()) + " ";
            return tj::Status();
          },
      .on_batch_end =
          [&](tj::FitControl&, int64_t batch, const tj::Metrics&) {
            calls += "e" + std::to_string(batch) + " ";
            return tj::Status();
          }}};
  ASSERT_TRUE(Compiled().Fit(Points(64), options).ok());
  EXPECT_EQ(calls, "b0@0 e0 b1@1 e1 b0@2 e0 b1@3 e1 ");
}

TEST(OnBatchBegin, PrecedesAStepOnceIfACallbackChangesTheLearningRate) {
  std::string calls;
  tj::FitOptions options = Quietly(2);
  const tj::LambdaCallback decay = {.on_batch_begin = [&](tj::FitControl& run, int64_t) {
    return run.SetLearningRate(run.learning_rate() / 2);
  }};
  const tj::LambdaCallback note = {.on_batch_begin = [&](tj::FitControl& run, int64_t batch) {
    calls += std::to_string(batch) + "@" + std::to_string(run.step()) + " ";
    return calls.size() < 100 ? tj::Status() : tj::Status(tj::StatusCode::kAborted, "again");
  }};
  options.callbacks = {decay, note};
  tj::CompiledModel model = Compiled();
  const auto history = model.Fit(Points(64), options);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(calls, "0@0 1@1 0@2 1@3 ");
  EXPECT_EQ(model.step(), 4);
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{0, 1}));
  double rate = 0;
  options = Quietly(1);
  options.callbacks = {tj::LambdaCallback{.on_train_begin = [&](tj::FitControl& run) {
    rate = run.learning_rate();
    return tj::Status();
  }}};
  ASSERT_TRUE(model.Fit(Points(64), options).ok());
  EXPECT_DOUBLE_EQ(rate, 0.02 / 16);
}

TEST(StopTraining, BeforeAStepEndsTheEpoch) {
  int ended = 0;
  tj::FitOptions options = Quietly(5);
  options.callbacks = {tj::LambdaCallback{
      .on_batch_begin = [](tj::FitControl& run,
                           int64_t) { return run.step() == 4 ? run.StopTraining() : tj::Status(); },
      .on_epoch_end =
          [&](tj::FitControl&, int64_t, const tj::Metrics&) {
            ++ended;
            return tj::Status();
          }}};
  tj::CompiledModel model = Compiled();
  const auto history = model.Fit(Points(96), options);  // three batches
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_TRUE(history->stopped);
  EXPECT_EQ(model.step(), 4);
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(history->values.at("loss").size(), 2U);
  EXPECT_EQ(ended, 2);
}

TEST(History, HasTheLearningRateThatACallbackSets) {
  tj::FitOptions options = Quietly(3);
  options.callbacks = {tj::LearningRateScheduler{
      [](int64_t epoch, double rate) { return epoch == 0 ? rate : 0.005; }}};
  const auto history = Compiled().Fit(Points(64), options);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->values.at("learning_rate"), (std::vector<double>{0.02, 0.005, 0.005}));
  EXPECT_FALSE(Compiled().Fit(Points(64), Quietly(1)).value().values.contains("learning_rate"));
}

TEST(Metrics, AnUnknownNameIsAnErrorThatListsTheOthers) {
  const tj::Metrics metrics = Compiled().Evaluate(Points(10)).value();
  EXPECT_EQ(metrics.At("accuracy").value(), metrics["accuracy"]);
  EXPECT_EQ(metrics.At("acuracy").status().message(),
            "there is no metric \"acuracy\"; expected one of: loss, accuracy");
  EXPECT_EQ(tj::Metrics().At("loss").status().message(),
            "there is no metric \"loss\": this task has no metrics");
}

}  // namespace
