// Trains models with some layers recomputed in the backward pass. The results must be bit-identical
// to those without recomputation, and training must use less memory.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/model/apply_layer.h"
#include "runtime/model/layer_patterns.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/shape.h"
#include "runtime/selftest/example_models.h"
#include "runtime/selftest/model_check.h"
#include "tests/numerics/example_model.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

using selftest::ExampleModel;
using selftest::Trained;

Trained TrainedWith(const ExampleModel& example, const Model& model) {
  const auto built = BuildExampleModel(example, model);
  EXPECT_TRUE(built.ok()) << built.status();
  const auto trained = selftest::Train(*built, TestDevice(), /*count=*/3);
  EXPECT_TRUE(trained.ok()) << trained.status();
  return *trained;
}

// Trains with and without recomputation, and expects the same losses and the same changes of the
// variables. Returns the program's memory with recomputation as a percentage of the memory without.
double TrainsAlikeIn(const ExampleModel& example, Model model, const std::string& pattern) {
  const Trained expected = TrainedWith(example, model);
  EXPECT_EQ(Recompute(model, std::vector{pattern}), OkStatus());
  const Trained actual = TrainedWith(example, model);
  EXPECT_EQ(actual.losses, expected.losses);
  EXPECT_EQ(actual.changes, expected.changes);
  return 100 * static_cast<double>(actual.arena_bytes) / static_cast<double>(expected.arena_bytes);
}

Model Layers(const std::string& text) {
  const Json file = ReadDocument(text, "layers");
  const auto model = ReadLayers(JsonField(file)["layers"]);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

TEST(Recompute, AttentionKeepsNoScores) {
  EXPECT_LT(TrainsAlikeIn({"gpt2-small", 8}, ReadExample("gpt2-small"), "*attention*"), 85);
}

TEST(Recompute, ConvolutionsAndNormalizations) {
  const ExampleModel example{.name = "resnet-small", .batch = 4, .logits = false};
  TrainsAlikeIn(example, ReadExample("resnet-small"), "*");
}

TEST(Recompute, RecurrentLayersKeepNoSteps) {
  EXPECT_LT(TrainsAlikeIn({"an LSTM", 16}, Layers(R"(
layers:
  - InputLayer: {batch_shape: [null, 24, 8]}
  - LSTM: {units: 32, return_sequences: true}
  - LSTM: {units: 32, return_sequences: true}
  - LSTM: {units: 32}
  - Dense: {units: 10}
)"),
                          "lstm*"),
            60);
}

// In mixed precision, passes may fuse the ops before a copy differently, so the copy may be rounded
// differently from the original. The gradient of a maximum compares the maximum with its inputs, so
// both must come from copies.
TEST(Recompute, MaximaInMixedPrecision) {
  Model inner = Layers(R"(
layers:
  - InputLayer: {batch_shape: [null, 8, 6]}
  - Dense: {units: 16, activation: silu}
  - GlobalMaxPooling1D:
)");
  inner.name = "block";
  Model model = Sequential(
      "m", {{.name = "input", .config = layers::InputLayer{.shape = Shape({8, 6})}},
            {.name = "block",
             .config = NestedModel{.model = std::make_shared<const Model>(std::move(inner))}},
            {.name = "dense", .config = layers::Dense{.units = 10}}});
  ASSERT_TRUE(SetPolicy(model, DTypePolicy::kMixedBFloat16));
  const ExampleModel example{"maxima", 32};
  const Trained expected = TrainedWith(example, model);
  EXPECT_EQ(Recompute(model, std::vector<std::string>{"block"}), OkStatus());
  EXPECT_EQ(
      CompareTrained(TrainedWith(example, model), expected, {.losses = 0x1p-6, .changes = 0x1p-4}),
      OkStatus());
}

// The recomputation must draw the same random numbers as the first computation.
TEST(Recompute, DropoutIsTheSameTwice) {
  TrainsAlikeIn({"dropout", 16}, Layers(R"(
layers:
  - InputLayer: {batch_shape: [null, 64]}
  - Dense: {units: 64, activation: tanh}
  - Dropout: {rate: 0.4}
  - GaussianNoise: {stddev: 0.3}
  - Dense: {units: 64, activation: gelu}
  - Dropout: {rate: 0.4}
  - Dense: {units: 10}
)"),
                "*");
}

// Returns a model of equal blocks, each of which is a model of three layers.
Model Blocks(int count) {
  std::vector<Layer> blocks = {
      {.name = "input", .config = layers::InputLayer{.shape = Shape({64})}}};
  for (int i = 0; i < count; ++i) {
    Model block = Layers(R"(
layers:
  - InputLayer: {batch_shape: [null, 64]}
  - Dense: {units: 256, activation: gelu}
  - Dropout: {rate: 0.1}
  - Dense: {units: 64, activation: tanh}
)");
    block.name = StrCat("block_", i);
    const std::string name = block.name;
    blocks.push_back(
        {.name = name,
         .config = NestedModel{.model = std::make_shared<const Model>(std::move(block))}});
  }
  return Sequential("blocks", std::move(blocks));
}

TEST(Recompute, ANestedModelIsRecomputedAsAWhole) {
  const ExampleModel example{"blocks", 64};
  EXPECT_LT(TrainsAlikeIn(example, Blocks(8), "block_?"), 45);
}

}  // namespace
}  // namespace tfjob::model
