// Tests Estimators in a process that trains alone.
#include <gtest/gtest.h>
#include <signal.h>
#include <tfjob/tfjob.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace tj = tfjob;

std::string Folder(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

// Returns the examples of TensorFlow's guide to distributed training: x = 1 and y = 1 in every
// example.
tj::InputFunction Ones(int64_t examples = 100) {
  return [examples](const tj::InputContext&) -> tj::Result<tj::InputBatches> {
    const std::vector<float> ones(static_cast<size_t>(examples), 1.0F);
    return tj::InputBatches{
        .examples =
            tj::data::Arrays{.y = tj::Tensor::Of({examples, 1}, ones).value(),
                             .inputs = {{"feats", tj::Tensor::Of({examples, 1}, ones).value()}}},
        .batch_size = 10};
  };
}

tj::RunConfig ConfigIn(const std::string& folder) {
  return {.model_dir = folder,
          .train_distribute = tj::Strategy::OneDevice(),
          .session = {.threads = 1}};
}

tj::Estimator Regressor(const std::string& folder) {
  return tj::LinearRegressor{
      .feature_columns = {{"feats"}}, .optimizer = "sgd", .config = ConfigIn(folder)};
}

// The initial error is 1, and with the rate 0.2 each step multiplies it by 1 - 4 · 0.2.
// TensorFlow's guide shows the result of ten steps: average_loss = 1.4e-14, prediction/mean =
// 0.99999994.
TEST(LinearRegressor, TakesTheStepsOfTensorFlow) {
  const tj::Estimator regressor = Regressor(Folder("linear"));
  ASSERT_TRUE(regressor.Train(Ones(), {.steps = 2}).ok());
  const auto after_two = regressor.Evaluate(Ones(), {.steps = 10});
  ASSERT_TRUE(after_two.ok()) << after_two.status();
  EXPECT_NEAR((*after_two)["loss"], std::pow(0.2, 4), 1e-7);
  EXPECT_EQ((*after_two)["global_step"], 2);
  ASSERT_TRUE(regressor.Train(Ones(), {.steps = 8}).ok());
  const auto after_ten = regressor.Evaluate(Ones());
  ASSERT_TRUE(after_ten.ok()) << after_ten.status();
  EXPECT_LT((*after_ten)["loss"], 1e-12);
  EXPECT_EQ((*after_ten)["global_step"], 10);
  const tj::Tensor one = tj::Tensor::Of({1, 1}, std::vector<float>{1}).value();
  tj::CompiledModel newest = regressor.Latest().value();
  const auto predicted = newest.Predict({{"feats", one}}).value();
  EXPECT_NEAR(predicted.begin()->second.float32()[0], 1, 1e-6);
}

TEST(Estimator, TrainsUntilMaxStepsOnce) {
  const tj::Estimator regressor = Regressor(Folder("once"));
  ASSERT_TRUE(regressor.Train(Ones(), {.max_steps = 3}).ok());
  ASSERT_TRUE(regressor.Train(Ones(), {.max_steps = 3}).ok());
  EXPECT_EQ(regressor.Evaluate(Ones()).value()["global_step"], 3);
  EXPECT_EQ(regressor.Train(Ones(), {.steps = 1, .max_steps = 3}).code(),
            tj::StatusCode::kInvalidArgument);
  EXPECT_EQ(regressor.Train(Ones(), {}).code(), tj::StatusCode::kInvalidArgument);
}

TEST(Estimator, WithoutACheckpointThereIsNothingToEvaluate) {
  const tj::Estimator regressor = Regressor(Folder("empty"));
  EXPECT_EQ(regressor.Evaluate(Ones()).status().code(), tj::StatusCode::kNotFound);
  EXPECT_EQ(regressor.Latest().status().code(), tj::StatusCode::kNotFound);
}

// Counts the calls of an input function.
struct Counted {
  tj::InputFunction Function() {
    return [this](const tj::InputContext& context) {
      ++calls;
      pipelines = context.num_input_pipelines;
      return Ones(20)(context);
    };
  }
  int calls = 0, pipelines = 0;
};

TEST(TrainAndEvaluate, ReturnsTheResultOfTheLastStep) {
  Counted train, eval;
  const tj::Estimator regressor = Regressor(Folder("both"));
  const auto last = tj::TrainAndEvaluate(regressor, {.input_fn = train.Function(), .max_steps = 4},
                                         {.input_fn = eval.Function()});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ((*last)["global_step"], 4);
  EXPECT_NEAR((*last)["loss"], std::pow(0.2, 8), 1e-8);
  EXPECT_EQ((*last)["loss"], regressor.Evaluate(Ones(20)).value()["loss"]);
  EXPECT_EQ(train.calls, 1);
  EXPECT_EQ(train.pipelines, 1);
  EXPECT_EQ(eval.calls, 1);
}

// Returns the number of evaluations whose summaries are in the folder. Every evaluation writes one
// loss.
int EvaluationsIn(const std::string& folder) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/eval")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (size_t at = text.find("loss"); at != std::string::npos; at = text.find("loss", at + 1))
      ++found;
  }
  return found;
}

// evaluation_throttle_test.cc tests which checkpoints are evaluated, with simulated times.
TEST(TrainAndEvaluate, EvaluatesTheLastStateWhateverTheThrottle) {
  for (const double throttle : {0.0, 1000.0}) {
    const std::string folder = Folder("throttle");
    tj::RunConfig config = ConfigIn(folder);
    config.save_checkpoints_steps = 1;
    const tj::Estimator regressor =
        tj::LinearRegressor{.feature_columns = {{"feats"}}, .optimizer = "sgd", .config = config};
    const auto last = tj::TrainAndEvaluate(regressor, {.input_fn = Ones(), .max_steps = 5000},
                                           {.input_fn = Ones(20), .throttle_secs = throttle});
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ((*last)["global_step"], 5000);
    // With a throttle, only the first checkpoint after the start (if there is one) and the last
    // state are evaluated. Without a throttle, every checkpoint that is written before the run ends
    // is evaluated.
    EXPECT_GE(EvaluationsIn(folder), 1);
    if (throttle > 0) EXPECT_LE(EvaluationsIn(folder), 2);
  }
}

// Sends the process a request to stop when the middle example is read.
class AsksToStop : public tj::data::Source {
 public:
  int64_t size() const override { return 1000; }
  tj::Result<tj::data::Example> Row(int64_t i) const override {
    if (i == 500) raise(SIGTERM);
    const tj::Tensor one = tj::Tensor::Of({1}, std::vector<float>{1}).value();
    return tj::data::Example{.y = one, .inputs = {{"feats", one}}};
  }
};

TEST(TrainAndEvaluate, DoesNotSucceedWithoutTheLastEvaluation) {
  const tj::Estimator regressor = Regressor(Folder("stopped"));
  const auto eval = [](const tj::InputContext&) -> tj::Result<tj::InputBatches> {
    return tj::InputBatches{.examples = tj::data::From(std::make_shared<AsksToStop>()),
                            .batch_size = 10};
  };
  const auto last = tj::TrainAndEvaluate(regressor, {.input_fn = Ones(), .max_steps = 2},
                                         {.input_fn = eval, .steps = 0});
  EXPECT_EQ(last.status().code(), tj::StatusCode::kCancelled) << last.status();
  EXPECT_EQ(regressor.Latest().value().step(), 2) << "there is a checkpoint";
}

TEST(TrainAndEvaluate, MirroredReplicasHaveABatchEach) {
  tj::RunConfig config = ConfigIn(Folder("mirrored"));
  config.train_distribute = tj::Strategy::Mirrored(2);
  config.session.threads = 2;
  const tj::Estimator regressor =
      tj::LinearRegressor{.feature_columns = {{"feats"}}, .optimizer = "sgd", .config = config};
  const auto last =
      tj::TrainAndEvaluate(regressor, {.input_fn = Ones(), .max_steps = 2}, {.input_fn = Ones(20)});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_NEAR((*last)["loss"], std::pow(0.2, 4), 1e-7);
}

// Returns points on both sides of x = 0. The class of each point is the side on which it lies.
tj::InputFunction Sides(int64_t classes) {
  return [classes](const tj::InputContext&) -> tj::Result<tj::InputBatches> {
    std::vector<float> x;
    std::vector<int64_t> y;
    for (int64_t i = 0; i < 60; ++i) {
      const int64_t label = i % classes;
      x.push_back(static_cast<float>(label) * 2 - static_cast<float>(classes - 1));
      y.push_back(label);
    }
    return tj::InputBatches{
        .examples = tj::data::Arrays{.y = tj::Tensor::Of({60}, y).value(),
                                     .inputs = {{"x", tj::Tensor::Of({60, 1}, x).value()}}},
        .batch_size = 20};
  };
}

TEST(LinearClassifier, SeparatesTwoClasses) {
  const tj::Estimator classifier =
      tj::LinearClassifier{.feature_columns = {{"x"}}, .config = ConfigIn(Folder("two"))};
  const auto last = tj::TrainAndEvaluate(classifier, {.input_fn = Sides(2), .max_steps = 30},
                                         {.input_fn = Sides(2)});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ((*last)["binary_accuracy"], 1);
  EXPECT_LT((*last)["loss"], std::log(2.0)) << "the loss of a model of zeros";
}

TEST(DNNClassifier, SeparatesThreeClasses) {
  const tj::Estimator classifier = tj::DNNClassifier{.hidden_units = {16, 16},
                                                     .feature_columns = {{"x"}},
                                                     .n_classes = 3,
                                                     .config = ConfigIn(Folder("three"))};
  const auto last = tj::TrainAndEvaluate(classifier, {.input_fn = Sides(3), .max_steps = 300},
                                         {.input_fn = Sides(3)});
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_GT((*last)["accuracy"], 0.9);
}

TEST(Estimator, ErrorsNameTheArgument) {
  const auto error = [](const tj::Estimator& estimator) {
    return estimator.Train(Ones(), {.steps = 1}).message();
  };
  const std::string folder = Folder("errors");
  EXPECT_NE(error(tj::LinearRegressor{.config = ConfigIn(folder)}).find("feature_columns"),
            std::string::npos);
  EXPECT_NE(error(tj::LinearClassifier{
                      .feature_columns = {{"x"}}, .n_classes = 1, .config = ConfigIn(folder)})
                .find("n_classes: expected at least 2, got 1"),
            std::string::npos);
  tj::RunConfig config = ConfigIn(folder);
  config.save_checkpoints_steps = 10;
  config.save_checkpoints_secs = 10;
  EXPECT_NE(error(tj::LinearRegressor{.feature_columns = {{"x"}}, .config = config})
                .find("save_checkpoints_secs, got both"),
            std::string::npos);
  config = ConfigIn(folder);
  config.eval_distribute = tj::Strategy::Mirrored(2);
  EXPECT_NE(error(tj::LinearRegressor{.feature_columns = {{"x"}}, .config = config})
                .find("eval_distribute"),
            std::string::npos);
  EXPECT_NE(tj::TrainAndEvaluate(Regressor(folder), {.input_fn = Ones()}, {.input_fn = Ones()})
                .status()
                .message()
                .find("TrainSpec: max_steps: expected at least 1, got 0"),
            std::string::npos);
  EXPECT_NE(tj::TrainAndEvaluate(Regressor(folder), {.max_steps = 1}, {.input_fn = Ones()})
                .status()
                .message()
                .find("TrainSpec: input_fn: expected a function"),
            std::string::npos);
  const tj::InputFunction fails = [](const tj::InputContext&) -> tj::Result<tj::InputBatches> {
    return tj::Status(tj::StatusCode::kNotFound, "no data today");
  };
  EXPECT_NE(Regressor(folder).Train(fails, {.steps = 1}).message().find("no data today"),
            std::string::npos);
}

}  // namespace
