// Trains the example models on a simulated GPU (exec/emulated_cuda_device.h) and on the CPU. Every
// op in the graphs of the models must have a CUDA kernel, and both devices must compute the same
// losses and variables. Some models are also trained in mixed precision.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/model/apply_layer.h"
#include "tests/numerics/trained_example.h"

namespace tfjob::model {
namespace {

double Norm(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

double Distance(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return Norm(a);
}

// Returns whether a variable changes too little to be compared. The bias of an attention layer's
// keys adds the same number to all scores of a query, so the softmax of the scores does not depend
// on this bias. In nmt-small, the attention scores are almost equal at first, so the gradients of
// the queries and keys are tiny.
bool ChangesTooLittle(const std::string& name) {
  return name.ends_with("key/bias") || name == "attention/key/kernel" ||
         name == "attention/query/kernel";
}

// Specifies how much the results of the devices may differ, relative to their magnitude.
struct Tolerance {
  double losses = 1e-4, changes = 1e-3;
};

// Compares changes instead of values, because a variable with small gradients changes only a
// little. Rounding the variables may change elements by about 1e-7.
void ExpectChangesLike(const std::map<std::string, std::vector<float>>& actual,
                       const std::map<std::string, std::vector<float>>& expected,
                       const Tolerance& tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, changes] : expected) {
    const double root = std::sqrt(static_cast<double>(changes.size()));
    const double change = Norm(changes) / root;
    const double difference = Distance(actual.at(name), changes) / root;
    if (!ChangesTooLittle(name)) {
      EXPECT_GT(change, 2e-6) << name;
    }
    EXPECT_LT(difference, tolerance.changes * change + 2e-7)
        << name << ", which changes by " << change;
  }
}

void ExpectTrainsLikeTheCpu(const Example& example, const Model& model,
                            const Tolerance& tolerance = {}) {
  const BuiltGraph built = BuildExample(example, model);
  const Trained expected = Train(built, exec::CpuDevice());
  const Trained actual = Train(built, exec::EmulatedCudaDevice(/*seed=*/7));
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(actual.losses[i], expected.losses[i],
                tolerance.losses * std::abs(expected.losses[i]))
        << i;
  EXPECT_EQ(actual.hits, expected.hits);
  ExpectChangesLike(actual.changes, expected.changes, tolerance);
}

void ExpectTrainsLikeTheCpu(const Example& example) {
  ExpectTrainsLikeTheCpu(example, ReadExample(example.name));
}

TEST(CudaModels, NeuralMatrixFactorization) {
  ExpectTrainsLikeTheCpu({"neumf-small", 16, LossKind::kBinaryCrossentropy});
}

TEST(CudaModels, Bert) {
  ExpectTrainsLikeTheCpu({"bert-small", 3});
}

TEST(CudaModels, Gpt2) {
  ExpectTrainsLikeTheCpu({"gpt2-small", 3});
}

TEST(CudaModels, Transformer) {
  ExpectTrainsLikeTheCpu({"transformer-small", 2});
}

TEST(CudaModels, RecurrentTranslator) {
  ExpectTrainsLikeTheCpu({"nmt-small", 2});
}

TEST(CudaModels, ConvolutionalNetwork) {
  ExpectTrainsLikeTheCpu({"mnist-cnn", 3});
}

TEST(CudaModels, ResNet) {
  ExpectTrainsLikeTheCpu({.name = "resnet-small", .batch = 3, .logits = false});
}

TEST(CudaModels, DenseNet) {
  ExpectTrainsLikeTheCpu({.name = "densenet-small", .batch = 2, .logits = false});
}

// Trains the model in bfloat16 and in float16, with a scaled loss. The devices add numbers in
// different orders, so some activations and gradients differ in the last bit, that is, by 2^-8
// (bfloat16) or 2^-11 (float16) of their magnitude.
void ExpectTrainsLikeTheCpuInHalf(const Example& example, const std::string& layers) {
  const Json file = ReadDocument(layers, "layers");
  const auto model = ReadLayers(JsonField(file)["layers"]);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const auto& [policy, bit] : {std::pair(DTypePolicy::kMixedBFloat16, 0x1p-8),
                                    std::pair(DTypePolicy::kMixedFloat16, 0x1p-11)}) {
    SCOPED_TRACE(Name(policy));
    Model mixed = *model;
    ASSERT_TRUE(SetPolicy(mixed, policy));
    ExpectTrainsLikeTheCpu(example, mixed, {.losses = bit, .changes = 8 * bit});
  }
}

TEST(CudaModels, PerceptronInMixedPrecision) {
  ExpectTrainsLikeTheCpuInHalf({"a perceptron", 13}, R"(
layers:
  - InputLayer: {batch_shape: [null, 9, 5]}
  - Flatten:
  - Dense: {units: 33, activation: tanh}
  - Dropout: {rate: 0.3}
  - Dense: {units: 16, activation: relu}
  - Dense: {units: 10}
)");
}

TEST(CudaModels, ConvolutionalNetworkInMixedPrecision) {
  ExpectTrainsLikeTheCpuInHalf({"a convolutional network", 5}, R"(
layers:
  - InputLayer: {batch_shape: [null, 12, 11]}
  - Reshape: {target_shape: [12, 11, 1]}
  - Conv2D: {filters: 8, kernel_size: 3, padding: same, activation: relu}
  - MaxPooling2D:
  - BatchNormalization:
  - Conv2D: {filters: 12, kernel_size: 3}
  - AveragePooling2D: {pool_size: [2, 1]}
  - Flatten:
  - Dense: {units: 10}
)");
}

TEST(CudaModels, RandomChangesOfImages) {
  const Json file = ReadDocument(R"(
layers:
  - InputLayer: {batch_shape: [null, 9, 8, 3]}
  - Conv2D: {filters: 3, kernel_size: 1}
  - RandomCrop: {height: 7, width: 6}
  - RandomFlip:
  - RandomTranslation: {height_factor: 0.2, width_factor: 0.1}
  - RandomRotation: {factor: 0.1, fill_mode: constant}
  - RandomZoom: {height_factor: 0.2, fill_mode: nearest}
  - RandomShear: {x_factor: 0.2}
  - RandomInvert: {factor: 0.5, value_range: [0, 1]}
  - RandomGrayscale:
  - Flatten:
  - Dense: {units: 2}
)",
                                 "layers");
  const auto model = ReadLayers(JsonField(file)["layers"]);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectTrainsLikeTheCpu({"random changes", 6}, *model);
}

}  // namespace
}  // namespace tfjob::model
