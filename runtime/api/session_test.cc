// Uses the API as a program does.
#include <gtest/gtest.h>
#include <signal.h>
#include <tfjob/tfjob.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace tj = tfjob;

namespace {

std::string Temp(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

// Returns `examples` points, of which those with x0 > x1 have the class 1.
tj::data::Arrays Points(int64_t examples) {
  tj::Tensor x(tj::DType::kFloat32, {examples, 2}), y(tj::DType::kInt64, {examples});
  uint32_t state = 12345;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
  };
  for (int64_t i = 0; i < examples; ++i) {
    const float a = next(), b = next();
    x.float32()[static_cast<size_t>(2 * i)] = a;
    x.float32()[static_cast<size_t>(2 * i + 1)] = b;
    y.int64()[static_cast<size_t>(i)] = a > b ? 1 : 0;
  }
  return {.x = x, .y = y};
}

tj::Model Classifier(bool with_input = true) {
  std::vector<tj::Layer> layers = {tj::Dense{.units = 8, .activation = "tanh"},
                                   tj::Dense{.units = 2, .name = "logits"}};
  if (with_input) layers.insert(layers.begin(), tj::Input{.shape = {2}});
  return tj::Sequential(layers);
}

tj::CompileOptions Options() {
  return {.optimizer = tj::Adam{.learning_rate = 0.02},
          .loss = tj::SparseCategoricalCrossentropy{.from_logits = true},
          .metrics = {"accuracy"}};
}

tj::CompiledModel Compiled(const tj::Model& model = Classifier()) {
  return tj::Session(tj::Strategy::OneDevice(), {.threads = 1}).Compile(model, Options()).value();
}

tj::FitOptions Quietly(int64_t epochs, int64_t initial_epoch = 0) {
  return {.epochs = epochs, .initial_epoch = initial_epoch, .verbose = tj::Verbose::kSilent};
}

std::vector<std::vector<float>> WeightsOf(const tj::CompiledModel& model) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, tensor] : model.Weights().value())
    all.emplace_back(tensor.float32().begin(), tensor.float32().end());
  return all;
}

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

  // Predictions give the accuracy that Evaluate reports.
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
  EXPECT_TRUE(model.Fit(Points(10), Quietly(2, 2))->epoch.empty());
  EXPECT_EQ(WeightsOf(model), before);
}

TEST(Fit, OptionsAreChecked) {
  tj::CompiledModel model = Compiled();
  const tj::Dataset train = Points(10);
  const auto error = [&](const tj::FitOptions& options) {
    return model.Fit(train, options).status().message();
  };
  EXPECT_EQ(error({.batch_size = 0}), "batch_size: expected at least 1, got 0");
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
  const double loss = plain.Fit(points, Quietly(1))->values.at("loss")[0];
  const double twice = by_class.Fit(points, weighted)->values.at("loss")[0];
  EXPECT_GT(twice, 1.5 * loss);
  points.sample_weight = tj::Tensor::Of({64}, std::vector<float>(64, 2.0F)).value();
  EXPECT_DOUBLE_EQ(by_sample.Fit(points, Quietly(1))->values.at("loss")[0], twice);
}

TEST(Fit, EndsWhenTheProcessIsAskedToStop) {
  // In a process of its own, because a request to stop is never withdrawn.
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
  EXPECT_TRUE(model.Evaluate(points, {.batch_size = 10, .steps = 2}).ok());
  EXPECT_EQ(model.Evaluate(points, {.batch_size = 0}).status().message(),
            "batch_size: expected 1 to 16777216, got 0");
  EXPECT_EQ(model.Evaluate(points, {.steps = -1}).status().message(),
            "steps: expected at least 0, got -1");
}

TEST(Functional, InputsAndOutputsHaveNames) {
  const tj::Symbol a = tj::Input{.shape = {2}, .name = "a"};
  const tj::Symbol b = tj::Input{.shape = {3}, .name = "b"};
  const tj::Symbol both = tj::Concatenate{}({a, b});
  const tj::Model model = tj::Functional({a, b}, {tj::Dense{.units = 1, .name = "sum"}(both),
                                                  tj::Dense{.units = 1, .name = "first"}(a)});
  tj::CompiledModel compiled =
      tj::Session(tj::Strategy::OneDevice())
          .Compile(model, {.optimizer = "sgd",
                           .outputs = {{"sum", {.loss = "mean_squared_error"}},
                                       {"first",
                                        {.loss = tj::Huber{.delta = 0.5},
                                         .loss_weight = 2,
                                         .metrics = {"mean_absolute_error"}}}}})
          .value();
  const auto zeros = [](int64_t width) { return tj::Tensor(tj::DType::kFloat32, {8, width}); };
  const tj::data::Arrays arrays = {.inputs = {{"a", zeros(2)}, {"b", zeros(3)}},
                                   .targets = {{"sum", zeros(1)}, {"first", zeros(1)}}};
  const auto history = compiled.Fit(arrays, Quietly(1));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_TRUE(history->values.contains("first_mean_absolute_error"));
  EXPECT_TRUE(history->values.contains("sum_loss"));
  const auto outputs = compiled.Predict({{"a", zeros(2)}, {"b", zeros(3)}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->size(), 2U);
  EXPECT_EQ(outputs->at("sum").shape(), (std::vector<int64_t>{8, 1}));
  EXPECT_NE(compiled.Predict(zeros(2)).status().message().find("2 outputs"), std::string::npos);
  EXPECT_FALSE(compiled.Predict({{"a", zeros(2)}}).ok());
}

TEST(Compile, ErrorsSayWhatToChange) {
  const tj::Session session(tj::Strategy::OneDevice());
  const auto error = [&](const tj::Model& model, const tj::CompileOptions& options) {
    return session.Compile(model, options).status().message();
  };
  EXPECT_NE(error(Classifier(), {.optimizer = "adam"}).find("loss: expected"), std::string::npos);
  tj::CompileOptions options = Options();
  options.optimizer = tj::Adam{.learning_rate = -1};
  EXPECT_EQ(error(Classifier(), options),
            "optimizer.learning_rate: expected a value of at least 0, got -1.0");
  options = Options();
  options.metrics = {"acuracy"};
  EXPECT_NE(error(Classifier(), options).find("acuracy"), std::string::npos);
  options = Options();
  options.outputs = {{"nothing", {.loss = "mean_squared_error"}}};
  EXPECT_NE(error(Classifier(), options).find("outputs.nothing: the model has no such output"),
            std::string::npos);
  EXPECT_NE(error(tj::Model(), Options()).find("there is no model"), std::string::npos);
  EXPECT_NE(tj::Session(tj::Strategy::Mirrored(0))
                .Compile(Classifier(), Options())
                .status()
                .message()
                .find("1 to 256 devices"),
            std::string::npos);
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice(), {.device = "gpu"})
                .Compile(Classifier(), Options())
                .status()
                .message()
                .find("device"),
            std::string::npos);
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice(), {.log_level = "loud"})
                .Compile(Classifier(), Options())
                .status()
                .message()
                .find("log_level"),
            std::string::npos);
}

TEST(Compile, OptimizersAndSchedulesHaveTheirOptions) {
  tj::CompileOptions options = Options();
  options.optimizer =
      tj::SGD{.learning_rate =
                  tj::CosineDecay{.initial_learning_rate = 0.5, .decay_steps = 100, .alpha = 0.1},
              .momentum = 0.9,
              .nesterov = true,
              .clipnorm = 1.0};
  EXPECT_TRUE(tj::Session(tj::Strategy::OneDevice()).Compile(Classifier(), options).ok());
  options.optimizer = tj::AdamW{.weight_decay = 0.01, .exclude_from_weight_decay = {"bias"}};
  EXPECT_TRUE(tj::Session(tj::Strategy::OneDevice()).Compile(Classifier(), options).ok());
  options.optimizer = tj::SGD{.learning_rate = tj::ExponentialDecay{.decay_rate = 0.5}};
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice())
                .Compile(Classifier(), options)
                .status()
                .message()
                .find("decay_steps"),
            std::string::npos);
}

TEST(Save, AWholeModelContinuesWhereItEnded) {
  const tj::Dataset train = Points(100);
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(train, Quietly(2)).ok());
  const std::string path = Temp("model.keras");
  ASSERT_TRUE(model.Save(path).ok());

  const tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  tj::Result<tj::CompiledModel> loaded = session.Load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->step(), 8);
  EXPECT_EQ(WeightsOf(*loaded), WeightsOf(model));
  EXPECT_EQ(loaded->Evaluate(train)->values(), model.Evaluate(train)->values());

  // The optimizer's state is there, too: without a shuffle, both take the same steps.
  tj::FitOptions options = Quietly(1);
  options.shuffle = false;
  ASSERT_TRUE(model.Fit(train, options).ok());
  ASSERT_TRUE(loaded->Fit(train, options).ok());
  EXPECT_EQ(WeightsOf(*loaded), WeightsOf(model));

  // As a model without settings, it has the weights, but a new optimizer.
  tj::CompiledModel fresh = Compiled(tj::Model::Load(path).value());
  EXPECT_EQ(fresh.step(), 0);
}

TEST(Save, WeightsOfAllFormatsAreReadAgain) {
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(Points(64), Quietly(1)).ok());
  for (const char* name : {"w.safetensors", "w.weights.h5", "w.h5", "w.keras"}) {
    const std::string path = Temp(name);
    ASSERT_TRUE(model.Save(path).ok()) << name;
    tj::CompiledModel other = Compiled();
    EXPECT_NE(WeightsOf(other), WeightsOf(model));
    const tj::Status loaded = other.LoadWeights(path);
    ASSERT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(WeightsOf(other), WeightsOf(model)) << name;
    EXPECT_EQ(other.step(), 0);
  }
  EXPECT_EQ(model.Save(Temp("w.zip")).code(), tj::StatusCode::kInvalidArgument);
  EXPECT_EQ(model.LoadWeights(Temp("missing.safetensors")).code(), tj::StatusCode::kNotFound);
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice()).Load(Temp("none.keras")).status().message(), "");
}

TEST(Save, CheckpointsHoldTheWholeState) {
  const tj::Dataset train = Points(100);
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(train, Quietly(2)).ok());
  const std::string folder = Temp("checkpoints");
  ASSERT_TRUE(model.SaveCheckpoint(folder).ok());
  tj::CompiledModel other = Compiled();
  ASSERT_TRUE(other.LoadCheckpoint(folder).ok());
  EXPECT_EQ(other.step(), 8);
  EXPECT_EQ(WeightsOf(other), WeightsOf(model));
  tj::FitOptions options = Quietly(1);
  options.shuffle = false;
  ASSERT_TRUE(model.Fit(train, options).ok());
  ASSERT_TRUE(other.Fit(train, options).ok());
  EXPECT_EQ(WeightsOf(other), WeightsOf(model));
  EXPECT_EQ(other.LoadCheckpoint(Temp("empty")).code(), tj::StatusCode::kNotFound);
}

TEST(Predict, ChecksItsInput) {
  tj::CompiledModel model = Compiled();
  EXPECT_EQ(model.Predict(tj::Tensor()).status().message(), "there is no array of examples");
  EXPECT_NE(model.Predict(tj::Tensor(tj::DType::kFloat32, {4, 3}))
                .status()
                .message()
                .find("the model expects [2]"),
            std::string::npos);
  // Bytes become numbers.
  EXPECT_TRUE(model.Predict(tj::Tensor(tj::DType::kUInt8, {4, 2}), {.scale = 1.0 / 255}).ok());
}

TEST(Strategy, TheEnvironmentNamesTheJob) {
  unsetenv("TF_CONFIG");
  EXPECT_TRUE(tj::Strategy::FromEnvironment().status().ok());
  EXPECT_TRUE(tj::Session().is_chief());
  setenv("TF_CONFIG",
         R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"ps","index":0}})", 1);
  EXPECT_EQ(tj::Strategy::FromEnvironment().status().code(), tj::StatusCode::kUnimplemented);
  setenv("TF_CONFIG", "{", 1);
  const tj::Session session;
  EXPECT_NE(session.Compile(Classifier(), Options()).status().message().find("TF_CONFIG"),
            std::string::npos);
  unsetenv("TF_CONFIG");
}

}  // namespace
