#include "runtime/model/layer_patterns.h"

#include <gtest/gtest.h>

#include "runtime/model/layers/dense.h"
#include "runtime/model/nested_model.h"

namespace tfjob::model {
namespace {

// Returns a model of two layers, the second of which is itself a model of two layers.
Model Nested() {
  Model inner = Sequential("inner", {{.name = "dense", .config = layers::Dense{.units = 2}},
                                     {.name = "dense_1", .config = layers::Dense{.units = 2}}});
  return Sequential(
      "outer", {{.name = "dense", .config = layers::Dense{.units = 2}},
                {.name = "encoder",
                 .config = NestedModel{.model = std::make_shared<const Model>(std::move(inner))}}});
}

// Freezes the layers that match the patterns. Returns the names of the layers that remain
// trainable.
std::string TrainedAfter(const std::vector<std::string>& patterns) {
  Model model = Nested();
  const Status status = Freeze(model, patterns);
  if (!status.ok()) return std::string(Message(status));
  std::string trained;
  const auto variables = Variables(model, Features({2}));
  EXPECT_TRUE(variables.ok()) << variables.status();
  for (const VariableSpec& variable : *variables) {
    if (variable.trainable && variable.name.ends_with("/kernel"))
      trained += variable.name.substr(0, variable.name.size() - 7) + " ";
  }
  return trained;
}

TEST(Freeze, MatchesNamesWithTheNestedModelsAroundThem) {
  EXPECT_EQ(TrainedAfter({}), "dense encoder/dense encoder/dense_1 ");
  EXPECT_EQ(TrainedAfter({"dense"}), "encoder/dense encoder/dense_1 ");
  EXPECT_EQ(TrainedAfter({"encoder/*"}), "dense ");
  EXPECT_EQ(TrainedAfter({"encoder"}), "dense ") << "and what is in it";
  EXPECT_EQ(TrainedAfter({"*dense"}), "encoder/dense_1 ");
  EXPECT_EQ(TrainedAfter({"dense", "encoder/dense_[1-9]"}), "encoder/dense ");
}

TEST(Freeze, RefusesAPatternThatMatchesNoLayer) {
  EXPECT_EQ(TrainedAfter({"dense", "encodr"}),
            "model.frozen: \"encodr\" matches no layer and no variable; did you mean \"encoder\"?");
}

// Freezes the variables that match the patterns. Returns the names of all variables, in
// parentheses if the optimizer does not update them, or the error.
std::string VariablesAfter(const std::vector<std::string>& patterns) {
  Model model = Nested();
  const Status status = Freeze(model, patterns);
  if (!status.ok()) return std::string(Message(status));
  const auto variables = Variables(model, Features({2}));
  if (!variables.ok()) return std::string(Message(variables.status()));
  std::string text;
  for (const VariableSpec& variable : *variables) {
    EXPECT_TRUE(variable.trainable) << "as in files";
    text += variable.trained() ? variable.name + " " : StrCat("(", variable.name, ") ");
  }
  return text;
}

TEST(Freeze, MatchesFullNamesOfVariables) {
  EXPECT_EQ(VariablesAfter({"encoder/dense/kernel", "*_1/bias"}),
            "dense/kernel dense/bias (encoder/dense/kernel) encoder/dense/bias "
            "encoder/dense_1/kernel (encoder/dense_1/bias) ");
  EXPECT_EQ(VariablesAfter({"dense/*"}),
            "(dense/kernel) (dense/bias) encoder/dense/kernel encoder/dense/bias "
            "encoder/dense_1/kernel encoder/dense_1/bias ");
  EXPECT_EQ(VariablesAfter({"*/kernel", "dense/kernl"}),
            "model.frozen: \"dense/kernl\" matches no layer and no variable; did you mean "
            "\"dense/kernel\"?");
}

TEST(Freeze, ReportsAPatternWithoutAVariableAtOnceIfTheInputsAreStated) {
  Model model = Nested();
  model.layers[0].stated_input = Shape({2});
  const Status status = Freeze(model, std::vector<std::string>{"encoder/dense/b"});
  EXPECT_TRUE(Message(status).starts_with("model.frozen: \"encoder/dense/b\" matches no layer"))
      << status;
  EXPECT_TRUE(model.frozen.empty());
}

TEST(Freeze, OfAModelAppliesInTheModelsAroundIt) {
  Model inner = *Nested().layers[1].config.As<NestedModel>()->model;
  ASSERT_EQ(Freeze(inner, std::vector<std::string>{"dense/bias"}), OkStatus());
  const Model outer = Sequential(
      "outer", {{.name = "encoder",
                 .config = NestedModel{.model = std::make_shared<const Model>(std::move(inner))}}});
  const auto variables = *Variables(outer, Features({2}));
  EXPECT_EQ(variables[1].name, "encoder/dense/bias");
  EXPECT_TRUE(variables[1].frozen_by_name);
  EXPECT_FALSE(variables[0].frozen_by_name);
  const std::string summary = *Summary(outer, Features({2}));
  EXPECT_NE(summary.find(" (frozen: dense/bias)\n"), std::string::npos) << summary;
}

TEST(Recompute, MarksTheMatchingLayers) {
  Model model = Nested();
  ASSERT_EQ(Recompute(model, std::vector<std::string>{"encoder/dense"}), OkStatus());
  const Model& inner = *model.layers[1].config.As<NestedModel>()->model;
  EXPECT_FALSE(model.layers[0].recompute || model.layers[1].recompute);
  EXPECT_TRUE(inner.layers[0].recompute);
  EXPECT_FALSE(inner.layers[1].recompute);
  EXPECT_EQ(Message(Recompute(model, std::vector<std::string>{"dens"})),
            "model.recompute: \"dens\" matches no layer; did you mean \"dense\"?");
}

}  // namespace
}  // namespace tfjob::model
