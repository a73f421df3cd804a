// Trains the example models with layers that are recomputed for their gradients. The results must
// have the same bits as without recomputation, in less memory.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/model/layer_patterns.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/shape.h"
#include "tests/numerics/test_device.h"
#include "tests/numerics/trained_example.h"

namespace tfjob::model {
namespace {

Model Recomputing(Model model, const std::string& pattern) {
  EXPECT_EQ(Recompute(model, std::vector{pattern}), OkStatus());
  return model;
}

// Returns how much memory the program with recomputation takes, in percent of the program without.
double TrainsAlikeIn(const Example& example, const Model& model, const std::string& pattern) {
  const Trained expected = Train(BuildExample(example, model), TestDevice());
  const Trained actual = Train(BuildExample(example, Recomputing(model, pattern)), TestDevice());
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
  const Example example{.name = "resnet-small", .batch = 4, .logits = false};
  TrainsAlikeIn(example, ReadExample(example.name), "*");
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

// The second computation must draw the numbers of the first.
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
  const Example example{"blocks", 64};
  EXPECT_LT(TrainsAlikeIn(example, Blocks(8), "block_?"), 45);
}

}  // namespace
}  // namespace tfjob::model
