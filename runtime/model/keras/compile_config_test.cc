#include "runtime/model/keras/compile_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/keras/optimizer_state.h"

namespace tfjob::keras {
namespace {

using Kind = OptimizerVariable::Kind;

Json Parsed(const std::string& text) {
  const StatusOr<Json> json = ParseJson(text, "test");
  EXPECT_TRUE(json.ok()) << json.status();
  return json.ok() ? *json : Json();
}

const std::vector<std::string> kOne = {"y"}, kTwo = {"a", "b"};

std::string Objective(const std::string& compiled, const std::vector<std::string>& outputs) {
  const StatusOr<Json> keys = ObjectiveKeys(Parsed(compiled), outputs);
  return keys.ok() ? PrintJson(*keys) : std::string(Message(keys.status()));
}

std::string OptimizerOf(const std::string& optimizer) {
  const StatusOr<Json> keys = OptimizerKeys(Parsed(StrCat(R"({"optimizer": )", optimizer, "}")));
  return keys.ok() ? PrintJson(*keys) : std::string(Message(keys.status()));
}

TEST(CompileConfig, LossesAndMetricsHaveTheNamesOfTheTrainingFile) {
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": null})", kOne),
            R"({"loss":{"name":"mean_squared_error"}})");
  EXPECT_EQ(Objective(R"({"loss": {"class_name": "KLDivergence", "config": {"name": "k",
              "reduction": "sum", "dtype": {"class_name": "DTypePolicy", "config": {"name":
              "float32"}}}}, "loss_weights": [2], "metrics": ["acc", {"class_name": "function",
              "config": "mean_absolute_error"}, {"class_name": "LogCoshError", "config": {"name":
              "l"}}, {"class_name": "BinaryAccuracy", "config": {"threshold": 0.5}}]})",
                      kOne),
            R"({"loss":{"name":"kl_divergence","reduction":"sum"},"loss_weight":2.0,)"
            R"("metrics":[{"as":"acc","name":"accuracy"},"mean_absolute_error",)"
            R"({"as":"l","name":"log_cosh"},"binary_accuracy"]})");
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": [{"class_name": "BinaryAccuracy", "config":
              {"threshold": 0.25}}]})",
                      kOne),
            R"({"loss":{"name":"mean_squared_error"},)"
            R"("metrics":[{"name":"binary_accuracy","threshold":0.25}]})");
}

// A metric that does not set from_logits inherits the value from the loss.
TEST(CompileConfig, AMetricKeepsFromLogitsIfItDiffersFromTheLoss) {
  const auto metric = [](const char* loss_logits) {
    return Objective(StrCat(R"({"loss": {"class_name": "BinaryCrossentropy", "config":
              {"from_logits": )",
                            loss_logits, R"(}}, "metrics": [{"class_name": "BinaryCrossentropy",
              "config": {"name": "binary_crossentropy", "from_logits": false}}]})"),
                     kOne);
  };
  EXPECT_EQ(metric("true"), R"({"loss":{"from_logits":true,"name":"binary_crossentropy"},)"
                            R"("metrics":[{"from_logits":false,"name":"binary_crossentropy"}]})");
  EXPECT_EQ(metric("false"), R"({"loss":{"from_logits":false,"name":"binary_crossentropy"},)"
                             R"("metrics":["binary_crossentropy"]})");
}

// Keras writes both the thresholds of AUC and their number, which includes the ends.
TEST(CompileConfig, ThresholdsAndIgnoredClassesAreArguments) {
  EXPECT_EQ(Objective(R"({"loss": {"class_name": "SparseCategoricalCrossentropy", "config":
              {"from_logits": true, "ignore_class": 255, "reduction": "sum_over_batch_size"}},
              "metrics": [
              {"class_name": "AUC", "config": {"name": "auc", "num_thresholds": 4, "thresholds": [0.2, 0.7],
               "label_weights": null}},
              {"class_name": "Precision", "config": {"name": "precision", "thresholds": [0.3, 0.5],
               "top_k": null, "class_id": null}},
              {"class_name": "Recall", "config": {"name": "recall", "thresholds": null, "top_k": 2}}]})",
                      kOne),
            R"({"loss":{"from_logits":true,"ignore_class":255,)"
            R"("name":"sparse_categorical_crossentropy","reduction":"sum_over_batch_size"},)"
            R"("metrics":[{"name":"auc","thresholds":[0.2,0.7]},)"
            R"({"name":"precision","thresholds":[0.3,0.5]},{"name":"recall","top_k":2}]})");
}

// Keras reports a metric under the string that was passed to compile(), or under the name of the
// metric object.
TEST(CompileConfig, MetricsKeepTheNamesUnderWhichKerasReportsThem) {
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": ["mae", "MSE"], "weighted_metrics":
              [{"class_name": "AUC", "config": {"name": "auc_1", "curve": "PR"}},
              {"class_name": "Recall", "config": {"name": "recall"}},
              {"class_name": "function", "config": "mean_squared_error"}]})",
                      kOne),
            R"({"loss":{"name":"mean_squared_error"},)"
            R"("metrics":[{"as":"mae","name":"mean_absolute_error"},)"
            R"({"as":"MSE","name":"mean_squared_error"}],)"
            R"("weighted_metrics":[{"as":"auc_1","curve":"PR","name":"auc"},"recall",)"
            R"("mean_squared_error"]})");
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": null, "weighted_metrics":
              [null, ["mae", "accuracy"]]})",
                      kTwo),
            R"({"outputs":{"a":{"loss":{"name":"mean_squared_error"}},)"
            R"("b":{"loss":{"name":"mean_squared_error"},)"
            R"("weighted_metrics":[{"as":"mae","name":"mean_absolute_error"},"accuracy"]}}})");
  EXPECT_EQ(Objective(R"({"loss": "mse", "weighted_metrics": [{"class_name": "AUC", "config":
              {"name": 3}}]})",
                      kOne),
            "compile_config.weighted_metrics[0].config.name: expected a string, got 3");
}

TEST(CompileConfig, SettingsOfOutputsAreGivenByNameByPositionOrForAll) {
  const std::string wanted = R"({"outputs":{"a":{"loss":{"name":"mean_squared_error"},)"
                             R"("loss_weight":0.5,"metrics":["accuracy"]},)"
                             R"("b":{"loss":{"name":"mean_squared_error"},"loss_weight":2.0}}})";
  EXPECT_EQ(Objective(R"({"loss": "mse", "loss_weights": [0.5, 2], "metrics": [["accuracy"], []]})",
                      kTwo),
            wanted);
  EXPECT_EQ(Objective(R"({"loss": ["mse", "mse"], "loss_weights": {"a": 0.5, "b": 2},
              "metrics": {"a": ["accuracy"]}})",
                      kTwo),
            wanted);
  EXPECT_EQ(Objective(R"({"loss": ["mse"]})", kTwo),
            "compile_config.loss: expected one element per output (2), got a list");
}

TEST(CompileConfig, OptimizersAndSchedulesHaveTheirHyperParameters) {
  EXPECT_EQ(OptimizerOf(R"({"class_name": "AdamW", "config": {"name": "adamw", "beta_1": 0.8,
              "clipnorm": null, "use_ema": false, "ema_momentum": 0.99, "learning_rate":
              {"class_name": "ExponentialDecay", "config": {"initial_learning_rate": 0.1,
              "decay_steps": 10, "name": "e"}}}})"),
            R"({"beta_1":0.8,"learning_rate":0.1,"learning_rate_schedule":)"
            R"({"decay_steps":10,"name":"exponential_decay"},"name":"adamw"})");
  EXPECT_EQ(OptimizerOf(R"("adam")"), R"({"name":"adam"})");
}

TEST(CompileConfig, OtherThingsAreErrors) {
  EXPECT_EQ(OptimizerOf(R"({"class_name": "Lamb", "config": {}})").substr(0, 31),
            "there is no optimizer \"Lamb\"; k");
  EXPECT_EQ(OptimizerOf("7"),
            "compile_config.optimizer.class_name: expected a string, but it is "
            "missing");
  EXPECT_EQ(OptimizerOf(R"({"class_name": "SGD", "config": {"use_ema": 3}})"),
            "compile_config.optimizer.config.use_ema: expected true or false, got 3");
  EXPECT_EQ(Objective(R"({"loss": {"class_name": "MeanSquaredError", "config":
              {"reduction": null}}})",
                      kOne)
                .substr(0, 70),
            "compile_config.loss.config.reduction: expected sum_over_batch_size or ");
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": [{"class_name": "function", "config":
              "cosine_similarity"}]})",
                      kOne),
            "compile_config.metrics[0]: the file does not say whether the function "
            "cosine_similarity is that of keras.losses or of keras.metrics, which differ in sign; "
            "name metrics in the training file");
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": ["cosine_similarity"]})", kOne),
            R"({"loss":{"name":"mean_squared_error"},"metrics":["cosine_similarity"]})");
}

TEST(CompileConfig, WhatIsWrittenIsReadAgain) {
  optimizer::Optimizer adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  adam.learning_rate = 0.25;
  adam.schedule.decay = optimizer::Decay::kCosine;
  const Json keys = Parsed(R"({"loss": {"name": "kl_divergence", "reduction": "sum"},
      "loss_weight": 2.0, "metrics": ["accuracy", "auc", {"name": "binary_accuracy",
      "threshold": 0.25}], "weighted_metrics": ["log_cosh", {"name": "accuracy", "as": "acc"},
      {"name": "auc", "as": "pr", "curve": "PR"}], "optimizer": {"name": "adam", "beta_1": 0.5, "lazy": true,
      "learning_rate": 0.25, "learning_rate_schedule": {"name": "cosine_decay",
      "decay_steps": 7}}})");
  const auto config = MakeCompileConfig(std::span(&keys, 1), adam, /*scales_loss=*/false);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ((*config)["metrics"][1]["class_name"], "AUC");
  EXPECT_EQ(Objective(PrintJson(*config), kOne),
            R"({"loss":{"name":"kl_divergence","reduction":"sum"},"loss_weight":2.0,)"
            R"("metrics":["accuracy","auc",{"name":"binary_accuracy","threshold":0.25}],)"
            R"("weighted_metrics":["log_cosh",{"as":"acc","name":"accuracy"},)"
            R"({"as":"pr","curve":"PR","name":"auc"}]})");
  EXPECT_EQ(OptimizerOf(PrintJson((*config)["optimizer"])),
            R"({"beta_1":0.5,"learning_rate":0.25,"learning_rate_schedule":)"
            R"({"decay_steps":7,"name":"cosine_decay"},"name":"adam"})");
}

TEST(CompileConfig, TheOptimizerMayBeInsideALossScaleOptimizer) {
  const Json keys = Parsed(R"({"loss": {"name": "huber"}, "loss_weight": 1.0,
      "optimizer": {"name": "adam", "beta_1": 0.5}})");
  optimizer::Optimizer adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  adam.learning_rate = 0.25;
  Json written = (*MakeCompileConfig(std::span(&keys, 1), adam, /*scales_loss=*/true))["optimizer"];
  EXPECT_EQ(written["class_name"], "LossScaleOptimizer");
  EXPECT_EQ(OptimizerOf(PrintJson(written)),
            R"({"beta_1":0.5,"learning_rate":0.25,"name":"adam"})");
  written["config"]["dynamic_growth_steps"] = 7;
  EXPECT_THAT(OptimizerOf(PrintJson(written)),
              testing::HasSubstr("dynamic_growth_steps: expected 2000, the default"));
}

// The arguments that equal Keras' defaults are left out, except where another metric has them.
TEST(CompileConfig, MetricsOfClassesAreReadAndWritten) {
  const std::string given =
      R"([{"average":"macro","name":"f1_score","threshold":0.5},)"
      R"({"average":"micro","beta":2,"name":"fbeta_score"},)"
      R"({"name":"io_u","num_classes":3,"sparse_y_pred":false,"target_class_ids":[0,1]},)"
      R"("binary_io_u",{"name":"mean_io_u","num_classes":3},)"
      R"({"ignore_class":2,"name":"one_hot_mean_io_u","num_classes":3},)"
      R"({"name":"precision_at_recall","recall":0.5},"pearson_correlation"])";
  const Json keys = Parsed(R"({"loss": {"name": "mean_squared_error"}, "loss_weight": 1.0,
      "optimizer": {"name": "sgd"}, "metrics": )" +
                           given + "}");
  const auto config = MakeCompileConfig(std::span(&keys, 1), {}, /*scales_loss=*/false);
  ASSERT_TRUE(config.has_value());
  std::vector<std::string> classes;
  for (const Json& metric : (*config)["metrics"]) classes.push_back(metric["class_name"]);
  EXPECT_EQ(classes,
            (std::vector<std::string>{"F1Score", "FBetaScore", "IoU", "BinaryIoU", "MeanIoU",
                                      "OneHotMeanIoU", "PrecisionAtRecall", "PearsonCorrelation"}));
  EXPECT_TRUE((*config)["metrics"][1]["config"]["beta"].is_number_float()) << "as Keras requires";
  Json again = Parsed(Objective(PrintJson(*config), kOne))["metrics"];
  EXPECT_EQ(again[1]["beta"], 2);
  again[1]["beta"] = 2;  // it is 2.0 now
  EXPECT_EQ(PrintJson(again), given);
}

TEST(CompileConfig, ImpliedArgumentsOfIntersectionsOverUnionsAreLeftOut) {
  const auto metric = [](const std::string& config) {
    return Objective(
        R"({"loss": "mse", "metrics": [{"class_name": "OneHotIoU", "config": )" + config + "}]}",
        kOne);
  };
  EXPECT_EQ(metric(R"({"num_classes": 3, "target_class_ids": [1], "name": "one_hot_io_u",
                       "dtype": "int64", "ignore_class": null, "sparse_y_pred": false,
                       "axis": -1})"),
            R"({"loss":{"name":"mean_squared_error"},"metrics":[{"name":"one_hot_io_u",)"
            R"("num_classes":3,"target_class_ids":[1]}]})");
  EXPECT_NE(metric(R"({"num_classes": 3, "target_class_ids": [1], "dtype": "float32"})")
                .find(R"("dtype":"float32")"),
            std::string::npos)
      << "which the metric rejects, because its counts would not be integers";
}

// A single axis becomes a list, also -1, which is implied in other losses. Keras expects integers.
TEST(CompileConfig, LossesThatSumOverAxesKeepThem) {
  const auto axis = [](const std::string& value) {
    return Objective(StrCat(R"({"loss": {"class_name": "Dice", "config": {"axis": )", value,
                            R"(, "reduction": "mean"}}})"),
                     kOne);
  };
  EXPECT_EQ(axis("-1"),
            R"({"loss":{"axis":[-1],"name":"dice","reduction":"sum_over_batch_size"}})");
  EXPECT_EQ(axis("[1, 2]"),
            R"({"loss":{"axis":[1,2],"name":"dice","reduction":"sum_over_batch_size"}})");
  EXPECT_EQ(axis("null"), R"({"loss":{"name":"dice","reduction":"sum_over_batch_size"}})");
  const Json keys = Parsed(R"({"loss": {"name": "tversky", "axis": [1.0, 2.0]},
      "loss_weight": 1.0, "optimizer": {"name": "sgd"}})");
  const auto written = MakeCompileConfig(std::span(&keys, 1), {}, /*scales_loss=*/false);
  EXPECT_EQ((*written)["loss"]["class_name"], "Tversky");
  EXPECT_EQ((*written)["loss"]["config"]["axis"].dump(), "[1,2]");
  const Json ctc = Parsed(R"({"loss": {"name": "ctc"}, "loss_weight": 1.0,
                              "optimizer": {"name": "sgd"}})");
  EXPECT_EQ((*MakeCompileConfig(std::span(&ctc, 1), {}, false))["loss"]["class_name"], "CTC");
  EXPECT_EQ(Objective(R"({"loss": {"class_name": "CTC", "config": {}}})", kOne),
            R"({"loss":{"name":"ctc"}})");
}

TEST(CompileConfig, UnknownLossesAndMetricsAreNamed) {
  EXPECT_EQ(Objective(R"({"loss": {"class_name": "Wasserstein", "config": {"beta": 0.5}}})", kOne)
                .substr(0, 65),
            "compile_config.loss: loss wasserstein is not supported; known: sp");
  EXPECT_EQ(Objective(R"({"loss": "categorical_cross_entropy"})", kOne),
            "compile_config.loss: loss categorical_cross_entropy is not supported; did you mean "
            "\"categorical_crossentropy\"?");
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": ["mean_iou"]})", kOne),
            "compile_config.metrics[0]: metric mean_iou is not supported; did you mean "
            "\"mean_io_u\"?");
}

TEST(CompileConfig, ALossThatKerasLacksIsNotCompiled) {
  const Json keys = Parsed(R"({"loss": {"name": "clipped_crossentropy"}, "loss_weight": 1.0})");
  EXPECT_FALSE(MakeCompileConfig(std::span(&keys, 1), {}, /*scales_loss=*/false).has_value());
}

TEST(CompileConfig, MetricsThatKerasLacksAreLeftOut) {
  const Json keys = Parsed(R"({"loss": {"name": "huber"}, "loss_weight": 1.0,
      "optimizer": {"name": "sgd"}, "metrics": ["huber", "perplexity",
      "binary_focal_crossentropy", "categorical_focal_crossentropy", "mean_squared_error"]})");
  const auto config = MakeCompileConfig(std::span(&keys, 1), {}, /*scales_loss=*/false);
  ASSERT_TRUE(config.has_value());
  ASSERT_EQ((*config)["metrics"].size(), 1);
  EXPECT_EQ((*config)["metrics"][0]["class_name"], "MeanSquaredError");
}

std::string Order(const optimizer::Optimizer& optimizer) {
  std::string text;
  for (const OptimizerVariable& variable : OptimizerVariables(optimizer, 2))
    text += NameOfVariable(variable, kTwo) + " ";
  return text;
}

TEST(OptimizerState, VariablesHaveTheOrderOfKeras) {
  optimizer::Optimizer adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  adam.amsgrad = adam.use_ema = true;
  adam.gradient_accumulation_steps = 2;
  EXPECT_EQ(Order(adam),
            "iteration learning_rate a/average b/average a/gradient_accumulator "
            "b/gradient_accumulator a/momentum a/velocity b/momentum b/velocity a/velocity_hat "
            "b/velocity_hat ");
  optimizer::Optimizer rmsprop = optimizer::Optimizer::Default(optimizer::Kind::kRmsprop);
  rmsprop.momentum = 0.5;
  rmsprop.centered = true;
  EXPECT_EQ(Order(rmsprop),
            "iteration learning_rate a/velocity b/velocity a/momentum b/momentum "
            "a/average_gradient b/average_gradient ");
  optimizer::Optimizer nadam = optimizer::Optimizer::Default(optimizer::Kind::kNadam);
  nadam.schedule.decay = optimizer::Decay::kCosine;
  EXPECT_EQ(Order(nadam),
            "iteration a/momentum a/velocity b/momentum b/velocity momentum_product ");
  EXPECT_EQ(Order({}), "iteration learning_rate ");
}

}  // namespace
}  // namespace tfjob::keras
