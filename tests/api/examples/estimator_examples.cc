// Examples of estimator.h.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace

Tensor Column(int64_t rows, float value) {
  Tensor column(DType::kFloat32, {rows, 1});
  for (float& element : column.float32()) element = value;
  return column;
}

TEST(EstimatorExamples, Canned) {
  const std::string folder = Temp("regressor"), others = Temp("classifiers");
  const Tensor x = Column(100, 1), y = Column(100, 3);
  // [InputBatches, InputContext, NumericColumn, LinearRegressor, RunConfig]
  // [TrainSpec, EvalSpec, TrainAndEvaluate]
  const auto input = [&](const InputContext&) -> Result<InputBatches> {
    return InputBatches{.examples = data::Arrays{.y = y, .inputs = {{"feats", x}}},
                        .batch_size = 10};
  };
  const NumericColumn feats = {.key = "feats"};
  const RunConfig config = {.model_dir = folder, .save_checkpoints_steps = 100};
  const Estimator regressor =
      LinearRegressor{.feature_columns = {feats}, .optimizer = "sgd", .config = config};
  const TrainSpec train = {.input_fn = input, .max_steps = 200};
  const EvalSpec evaluation = {.input_fn = input};
  std::cout << TrainAndEvaluate(regressor, train, evaluation).value() << "\n";
  // [end]
  // [Estimator::model_dir, Estimator::Latest]
  std::cout << "checkpoints: " << regressor.model_dir() << "\n";
  CompiledModel newest = regressor.Latest().value();
  // [end]
  EXPECT_EQ(newest.step(), 200);
  const auto classes = [&](const InputContext&) -> Result<InputBatches> {
    return InputBatches{
        .examples = data::Arrays{.y = Tensor(DType::kInt64, {100}), .inputs = {{"feats", x}}}};
  };
  // [LinearClassifier, DNNClassifier]
  const Estimator linear = LinearClassifier{.feature_columns = {{.key = "feats"}},
                                            .n_classes = 3,
                                            .config = {.model_dir = others + "/a"}};
  const Estimator deep = DNNClassifier{.hidden_units = {16, 8},
                                       .feature_columns = {{.key = "feats"}},
                                       .n_classes = 3,
                                       .config = {.model_dir = others + "/b"}};
  // [end]
  for (const Estimator& classifier : {linear, deep}) {
    EXPECT_TRUE(classifier.Train(classes, {.steps = 5}).ok());
    EXPECT_EQ(classifier.Evaluate(classes).value()["accuracy"], 1);
  }
}

TEST(EstimatorExamples, Models) {
  const std::string folder = Temp("estimator");
  const Model model = Classifier();
  const CompileOptions options = Options();
  const auto input = [](const InputContext&) -> Result<InputBatches> {
    return InputBatches{.examples = Points(64)};
  };
  // [Estimator, ModelToEstimator]
  const Estimator estimator = ModelToEstimator(model, options, {.model_dir = folder});
  // [end]
  // [Estimator::Train, EstimatorTrainOptions]
  const EstimatorTrainOptions ten = {.steps = 10};
  estimator.Train(input, ten).value();
  // [end]
  // [Estimator::Evaluate, EstimatorEvaluateOptions]
  const EstimatorEvaluateOptions one_batch = {.steps = 1};
  const Metrics metrics = estimator.Evaluate(input, one_batch).value();
  std::cout << metrics["loss"] << " at step " << metrics["global_step"] << "\n";
  // [end]
  EXPECT_EQ(metrics["global_step"], 10);
}

}  // namespace
