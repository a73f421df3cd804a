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
            "model.frozen: \"encodr\" matches no layer; did you mean \"encoder\"?");
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
