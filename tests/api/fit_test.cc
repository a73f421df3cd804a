// Tests how Fit trains, and how it ends.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <map>
#include <memory>

#include "tests/api/programs.h"

namespace {

TEST(Fit, LearnsWhatEvaluateAndPredictThenShow) {
  const tj::Dataset train = Points(256), test = Points(512);
  tj::CompiledModel model = Compiled(Classifier(/*with_input=*/false));
  EXPECT_EQ(model.Weights().status().code(), tj::StatusCode::kFailedPrecondition);

  tj::FitOptions options = Quietly(20);
  options.validation = &test;
  const tj::History history = model.Fit(train, options).value();
  EXPECT_EQ(history.epoch.size(), 20U);
  EXPECT_EQ(history.epoch.back(), 19);
  EXPECT_FALSE(history.stopped);
  ASSERT_EQ(history.values.size(), 4U);
  EXPECT_LT(history.values.at("loss").back(), history.values.at("loss").front());
  EXPECT_GT(history.values.at("accuracy").back(), 0.9);
  EXPECT_EQ(model.step(), 20 * 8);

  const tj::Metrics metrics = model.Evaluate(test).value();
  EXPECT_DOUBLE_EQ(metrics["loss"], history.values.at("val_loss").back());
  EXPECT_DOUBLE_EQ(metrics["accuracy"], history.values.at("val_accuracy").back());

  // The predictions have the accuracy that Evaluate reports.
  const tj::data::Arrays points = Points(512);
  const tj::Tensor logits = model.Predict(points.x).value();
  ASSERT_EQ(logits.shape(), (std::vector<int64_t>{512, 2}));
  int right = 0;
  for (size_t i = 0; i < 512; ++i)
    right += (logits.float32()[2 * i + 1] > logits.float32()[2 * i]) == (points.y.int64()[i] == 1);
  EXPECT_DOUBLE_EQ(right / 512.0, metrics["accuracy"]);
}

TEST(Fit, InTwoPartsTakesTheStepsOfOne) {
  const tj::Dataset train = Points(100);  // the last batch of an epoch is smaller
  tj::CompiledModel whole = Compiled(), parts = Compiled();
  EXPECT_EQ(WeightsOf(whole), WeightsOf(parts)) << "equal seeds give equal initial values";
  ASSERT_TRUE(whole.Fit(train, Quietly(4)).ok());
  ASSERT_TRUE(parts.Fit(train, Quietly(3)).ok());
  const tj::CompiledModel copy = parts;
  const auto history = parts.Fit(train, Quietly(4, 3));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{3}));
  EXPECT_EQ(WeightsOf(whole), WeightsOf(parts));
  EXPECT_NE(WeightsOf(whole), WeightsOf(copy)) << "a copy is trained independently";
  EXPECT_EQ(copy.step(), 12);
}

TEST(Fit, WithoutEpochsChangesNothing) {
  tj::CompiledModel model = Compiled();
  const auto before = WeightsOf(model);
  EXPECT_TRUE(model.Fit(Points(10), Quietly(2, 2)).value().epoch.empty());
  EXPECT_EQ(WeightsOf(model), before);
}

TEST(Fit, OptionsAreChecked) {
  tj::CompiledModel model = Compiled();
  const tj::Dataset train = Points(10);
  const auto error = [&](const tj::FitOptions& options) {
    return model.Fit(train, options).status().message();
  };
  EXPECT_EQ(error({.batch_size = 0}), "batch_size: expected 1 to 16777216, got 0");
  EXPECT_EQ(error({.batch_size = 1 << 30}), "batch_size: expected 1 to 16777216, got 1073741824");
  EXPECT_EQ(error({.validation_batch_size = -1}),
            "validation_batch_size: expected 1 to 16777216, got -1");
  EXPECT_EQ(error({.class_weight = {{-1, 2.0}}}),
            "class_weight.-1: expected a class number of at least 0");
  EXPECT_NE(error({.class_weight = {{0, NAN}}}).find("class_weight.0: expected a finite weight"),
            std::string::npos);
  EXPECT_NE(error({.epochs = INT64_MAX}).find("more than 2^53 steps"), std::string::npos);
  EXPECT_NE(error({.callbacks = {std::shared_ptr<tj::CallbackHooks>()}}).find("null pointer"),
            std::string::npos);
  EXPECT_EQ(error({.epochs = 1, .initial_epoch = 2}), "epochs: expected at least 2, got 1");
  EXPECT_EQ(error({.validation_freq = 0}), "validation_freq: expected at least 1, got 0");
}

TEST(Fit, ErrorsOfDataNameTheArray) {
  tj::CompiledModel model = Compiled();
  const auto error = [&](const tj::data::Arrays& arrays) {
    return model.Fit(arrays, Quietly(1)).status().message();
  };
  tj::data::Arrays points = Points(10);
  points.y = {};
  EXPECT_EQ(error(points), "data.train: expected the array y, but the data have only x");
  points.y = tj::Tensor(tj::DType::kInt64, {9});
  EXPECT_EQ(error(points),
            "data.train: array x has 10 examples, but array y has 9; expected as many");
  points.y = tj::Tensor::Of({10}, std::vector<int64_t>{0, 1, 2, 0, 1, 0, 1, 0, 1, 0}).value();
  EXPECT_NE(error(points).find("array y: row 2"), std::string::npos) << error(points);
  points = Points(10);
  points.x = tj::Tensor(tj::DType::kFloat32, {10, 3});
  EXPECT_FALSE(error(points).empty());
  points = Points(10);
  points.inputs["a"] = points.x;
  EXPECT_NE(error(points).find("give one of the two"), std::string::npos) << error(points);
  EXPECT_EQ(model.Fit(tj::Dataset(), Quietly(1)).status().message(),
            "data.train: expected arrays of examples, but there are none");
}

TEST(Fit, ClassWeightsAndSampleWeightsChangeTheLoss) {
  tj::data::Arrays points = Points(64);
  tj::FitOptions weighted = Quietly(1);
  weighted.class_weight = {{0, 2.0}, {1, 2.0}};
  tj::CompiledModel plain = Compiled(), by_class = Compiled(), by_sample = Compiled();
  const double loss = plain.Fit(points, Quietly(1)).value().values.at("loss")[0];
  const double twice = by_class.Fit(points, weighted).value().values.at("loss")[0];
  EXPECT_GT(twice, 1.5 * loss);
  points.sample_weight = tj::Tensor::Of({64}, std::vector<float>(64, 2.0F)).value();
  EXPECT_DOUBLE_EQ(by_sample.Fit(points, Quietly(1)).value().values.at("loss")[0], twice);
}

// Returns a callback that sends SIGTERM to this process at the end of a step.
tj::LambdaCallback StopAt(int64_t step) {
  return {.on_batch_end = [step](tj::FitControl& run, int64_t, const tj::Metrics&) {
    if (run.step() == step) raise(SIGTERM);
    return tj::Status();
  }};
}

TEST(Fit, AskedToStopInAValidationKeepsItsSteps) {
  const tj::Dataset train = Points(64), test = Points(32);
  for (const int64_t epochs : {1, 3}) {
    tj::CompiledModel model = Compiled();
    const auto before = WeightsOf(model);
    bool ended = false;
    const tj::LambdaCallback note = {
        .on_epoch_end = [&](tj::FitControl&, int64_t, const tj::Metrics&) {
          ended = true;
          return tj::Status();
        }};
    tj::FitOptions options = Quietly(epochs);
    options.validation = &test;
    options.callbacks = {StopAt(2), note};  // the last step of the first epoch
    const auto history = model.Fit(train, options);
    EXPECT_EQ(history.status().code(), tj::StatusCode::kCancelled) << history.status();
    EXPECT_EQ(model.step(), 2);
    EXPECT_NE(WeightsOf(model), before);
    EXPECT_FALSE(ended) << "the validation of the epoch is not complete";
  }
}

TEST(Fit, ARequestToStopEndsOnlyTheFitThatRuns) {
  const tj::data::Arrays points = Points(64);
  tj::CompiledModel model = Compiled();
  tj::FitOptions options = Quietly(5);
  options.callbacks = {StopAt(3)};
  EXPECT_EQ(model.Fit(points, options).status().code(), tj::StatusCode::kCancelled);
  EXPECT_EQ(model.history().epoch, (std::vector<int64_t>{0}));
  EXPECT_TRUE(model.Evaluate(points).ok());
  EXPECT_TRUE(model.Predict(points.x).ok());
  EXPECT_TRUE(model.Fit(points, Quietly(1)).ok());
}

TEST(Fit, ItsCallbacksUseACopyOfTheModel) {
  const tj::data::Arrays points = Points(64);
  tj::CompiledModel model = Compiled();
  int64_t step = 0;
  double loss = 0, rate = 0;
  tj::FitOptions options = Quietly(1);
  options.callbacks = {
      tj::LambdaCallback{.on_epoch_end = [&](tj::FitControl& run, int64_t, const tj::Metrics&) {
        constexpr auto kNotNow = tj::StatusCode::kFailedPrecondition;
        EXPECT_EQ(model.Evaluate(points).status().code(), kNotNow);
        EXPECT_EQ(model.Predict(points.x).status().code(), kNotNow);
        EXPECT_EQ(model.Weights().status().code(), kNotNow);
        EXPECT_EQ(model.Save(Temp("now.safetensors")).code(), kNotNow);
        EXPECT_EQ(model.Fit(points, Quietly(1)).status().code(), kNotNow);
        tj::CompiledModel copy = run.Copy().value();
        step = copy.step();
        loss = copy.Evaluate(points).value()["loss"];
        rate = run.learning_rate();
        return tj::Status();
      }}};
  ASSERT_TRUE(model.Fit(points, options).ok());
  EXPECT_EQ(step, 2);
  EXPECT_EQ(rate, 0.02);
  EXPECT_EQ(model.Evaluate(points).value()["loss"], loss);

  const auto copy_it = [&] {
    options.callbacks = {tj::LambdaCallback{.on_train_begin = [&](tj::FitControl&) {
      const tj::CompiledModel other = model;
      return tj::Status();
    }}};
    (void)model.Fit(points, options);
  };
  EXPECT_EXIT(copy_it(), testing::ExitedWithCode(1), "Fit is running");
}

TEST(Fit, EndsWhenTheProcessIsAskedToStop) {
  const auto ask = [] {
    tj::CompiledModel model = Compiled();
    tj::FitOptions options = Quietly(1000);
    options.callbacks = {
        tj::LambdaCallback{.on_epoch_end = [](tj::FitControl&, int64_t epoch, const tj::Metrics&) {
          if (epoch == 2) raise(SIGTERM);
          return tj::Status();
        }}};
    const auto history = model.Fit(Points(64), options);
    if (history.ok() || model.step() != 6) return;
    history.status().value();
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(128 + SIGTERM), "");
}

tj::CompiledModel CompiledWith(const tj::Optimizer& optimizer) {
  tj::CompileOptions options = Options();
  options.optimizer = optimizer;
  return tj::Session(tj::Strategy::OneDevice(), {.threads = 1})
      .Compile(Classifier(), options)
      .value();
}

// Returns a callback that records the learning rate of each epoch.
tj::LambdaCallback RecordRates(std::vector<double>& rates) {
  return {.on_epoch_end = [&rates](tj::FitControl& run, int64_t, const tj::Metrics&) {
    rates.push_back(run.learning_rate());
    return tj::Status();
  }};
}

TEST(Fit, ContinuesAfterARequestToStopAsIfThereHadBeenNone) {
  // At the end of training, the variables are replaced with their moving averages, but only if the
  // training was not stopped.
  const tj::SGD optimizer = {.learning_rate = 0.5, .use_ema = true};
  const tj::Dataset train = Points(64);
  tj::CompiledModel whole = CompiledWith(optimizer), parts = CompiledWith(optimizer);
  ASSERT_TRUE(whole.Fit(train, Quietly(3)).ok());
  tj::FitOptions options = Quietly(3);
  options.callbacks = {StopAt(2)};  // the last step of the first epoch
  EXPECT_EQ(parts.Fit(train, options).status().code(), tj::StatusCode::kCancelled);
  EXPECT_EQ(parts.step(), 2);
  ASSERT_TRUE(parts.Fit(train, Quietly(3, 1)).ok());
  EXPECT_EQ(WeightsOf(parts), WeightsOf(whole));
}

TEST(LearningRateScheduler, TrainsEachEpochWithItsRate) {
  const tj::Dataset train = Points(96);
  tj::CompiledModel scheduled = CompiledWith(tj::SGD{.learning_rate = 0.5});
  std::vector<double> rates;
  tj::FitOptions options = Quietly(3);
  options.callbacks = {RecordRates(rates),
                       tj::LearningRateScheduler{
                           [](int64_t epoch, double rate) { return epoch == 0 ? rate : 0.125; }}};
  const auto history = scheduled.Fit(train, options);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_FALSE(history->stopped);
  EXPECT_EQ(scheduled.step(), 9);
  EXPECT_EQ(rates, (std::vector<double>{0.5, 0.125, 0.125}));

  tj::CompiledModel first = CompiledWith(tj::SGD{.learning_rate = 0.5});
  tj::CompiledModel second = CompiledWith(tj::SGD{.learning_rate = 0.125});
  ASSERT_TRUE(first.Fit(train, Quietly(1)).ok());
  std::map<std::string, tj::Tensor> values;
  for (const auto& [name, value] : first.Weights().value()) values[name] = value;
  ASSERT_TRUE(second.SetWeights(values).ok());
  ASSERT_TRUE(second.Fit(train, Quietly(3, 1)).ok());
  EXPECT_EQ(WeightsOf(scheduled), WeightsOf(second));

  // Later calls of Fit keep the last rate.
  rates.clear();
  options = Quietly(4, 3);
  options.callbacks = {RecordRates(rates)};
  ASSERT_TRUE(scheduled.Fit(train, options).ok());
  EXPECT_EQ(rates, (std::vector<double>{0.125}));
}

TEST(LearningRateScheduler, IsRefusedWhereTheRateCannotChange) {
  const tj::LearningRateScheduler halve = {[](int64_t, double rate) { return rate / 2; }};
  tj::FitOptions options = Quietly(2);
  options.callbacks = {halve};
  const tj::CosineDecay decay = {.initial_learning_rate = 0.1, .decay_steps = 10};
  const auto scheduled =
      CompiledWith(tj::SGD{.learning_rate = decay}).Fit(Points(32), options).status();
  EXPECT_EQ(scheduled.code(), tj::StatusCode::kFailedPrecondition);
  EXPECT_NE(scheduled.message().find("cosine_decay"), std::string::npos) << scheduled;
  options.callbacks = {tj::LearningRateScheduler{}};
  EXPECT_EQ(Compiled().Fit(Points(32), options).status().code(), tj::StatusCode::kInvalidArgument);
}

TEST(ReduceLROnPlateau, ReducesTheRateUntilItsMinimum) {
  tj::CompiledModel model = CompiledWith(tj::SGD{.learning_rate = 0.5});
  std::vector<double> rates;
  tj::FitOptions options = Quietly(5);
  // Because of min_delta, no later epoch counts as better than the first one.
  options.callbacks = {
      RecordRates(rates),
      tj::ReduceLROnPlateau{
          .monitor = "loss", .factor = 0.5, .patience = 1, .min_delta = 100, .min_lr = 0.2}};
  ASSERT_TRUE(model.Fit(Points(96), options).ok());
  EXPECT_EQ(rates, (std::vector<double>{0.5, 0.5, 0.25, 0.2, 0.2}));
}

TEST(Mirrored, TakesTheStepsOfOneDevice) {
  const tj::Dataset train = Points(96);
  tj::CompiledModel one = Compiled();
  tj::CompiledModel two = tj::Session(tj::Strategy::Mirrored(2), {.threads = 2})
                              .Compile(Classifier(), Options())
                              .value();
  ASSERT_TRUE(one.Fit(train, Quietly(2)).ok());
  const auto fitted = two.Fit(train, Quietly(2));
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  const auto expected = WeightsOf(one), got = WeightsOf(two);
  for (size_t v = 0; v < expected.size(); ++v) {
    for (size_t i = 0; i < expected[v].size(); ++i)
      EXPECT_NEAR(got[v][i], expected[v][i], 1e-5) << v << " " << i;
  }
}

TEST(Evaluate, CanTakeSomeBatches) {
  tj::CompiledModel model = Compiled();
  const tj::data::Arrays points = Points(100);
  EXPECT_EQ(model.Evaluate(points, {.batch_size = 10, .steps = 2}).value().values(),
            model.Evaluate(Points(20), {.batch_size = 10}).value().values());
  EXPECT_EQ(model.Evaluate(points, {.batch_size = 0}).status().message(),
            "batch_size: expected 1 to 16777216, got 0");
  EXPECT_EQ(model.Evaluate(points, {.steps = -1}).status().message(),
            "steps: expected at least 0, got -1");
}

}  // namespace
