// Trains the example models on a simulated GPU (exec/emulated_cuda_device.h) and on the CPU. Every
// op in the graphs of the models must have a CUDA kernel, and both devices must compute the same
// losses and variables. Some models are also trained in mixed precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/exec/program.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/build.h"
#include "tests/numerics/example_model.h"

namespace tfjob::model {
namespace {

constexpr int kSteps = 3;

struct Example {
  const char* name;
  int64_t batch = 0;
  LossKind loss = LossKind::kSparseCategoricalCrossentropy;
  bool logits = true;  // whether the model returns logits, for sparse losses
};

// Returns an optimizer whose learning rate changes with the step. Some gradients, such as that of
// the bias of an attention layer's keys, are zero except for rounding errors. Adam divides such a
// gradient by about epsilon, so epsilon must not be small.
optimizer::Optimizer MakeOptimizer() {
  auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  adam.learning_rate = 0.003;
  adam.epsilon = 1e-3;
  adam.schedule.decay = optimizer::Decay::kCosine;
  adam.schedule.decay_steps = 5;
  return adam;
}

BuiltGraph BuildExample(const Example& example, const Model& model) {
  BuildOptions options{.batch_size = example.batch, .optimizer = MakeOptimizer()};
  for (const auto& stated : StatedInputs(model)) options.features.push_back(*stated);
  const auto outputs = OutputTypes(model, options.features);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<int64_t> places = (*outputs)[0].shape.dims();
  places.pop_back();  // the classes
  const bool sparse = example.loss == LossKind::kSparseCategoricalCrossentropy;
  options.objectives = {{.loss = {.kind = example.loss, .from_logits = sparse && example.logits},
                         .metrics = {Metric::kAccuracy},
                         .labels = {sparse ? DType::kInt64 : DType::kFloat32, Shape(places)}}};
  FindMasks(model, options);
  auto built = Build(model, options);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// Returns values for a feed: small integers, which are valid ids and classes, or pixels below 1.
Tensor FeedOf(const exec::Port& port, int step) {
  Tensor feed(port.type.dtype, port.type.shape);
  PhiloxStream random(PhiloxKey(static_cast<uint64_t>(step), port.name));
  const uint32_t bound = port.name == "segments" || port.name == kLabels ? 2 : 24;
  const auto fill = [&](auto values) {
    for (auto& value : values)
      value = static_cast<std::remove_reference_t<decltype(value)>>(random.Below(bound));
  };
  if (port.type.dtype == DType::kInt32) fill(feed.data<int32_t>());
  if (port.type.dtype == DType::kInt64) fill(feed.data<int64_t>());
  if (port.type.dtype == DType::kFloat32) fill(feed.data<float>());
  if (port.type.dtype == DType::kFloat32 && port.type.shape.rank() > 2) {
    for (float& pixel : feed.data<float>()) pixel /= static_cast<float>(bound);
  }
  if (port.name == kStep) feed.data<int64_t>()[0] = step;
  if (port.name == kLossScale) feed.data<float>()[0] = 1024;
  return feed;
}

struct Trained {
  std::vector<float> losses, hits;
  std::map<std::string, std::vector<float>> changes;  // changes of the variables in all steps
};

Trained Train(const BuiltGraph& built, const exec::Device& device) {
  Trained trained;
  variables::VariableStore store(device.row_stride, device.runtime);
  for (const VariableSpec& spec : built.variables) {
    auto variable = store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable);
    const Tensor initial = InitialValue(spec.initializer, spec.dtype, spec.shape, 1, spec.name);
    EXPECT_EQ((*variable)->FromTensor(initial), OkStatus());
  }
  const auto program = exec::Compile(built.graph, store, device);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return trained;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> values;
    std::vector<exec::Feed> feeds;
    for (const exec::Port& port : (*program)->feeds()) values.push_back(FeedOf(port, step));
    for (const Tensor& value : values) feeds.push_back(exec::Feed::Of(value));
    EXPECT_EQ((*program)->Run(feeds), OkStatus());
    trained.losses.push_back((*program)->Fetch<float>((*program)->FindFetch(kLossSum))[0]);
    trained.hits.push_back((*program)->Fetch<float>((*program)->FindFetch("accuracy_sum"))[0]);
  }
  for (const VariableSpec& spec : built.variables) {
    const Tensor value = store.Find(spec.name)->ToTensor();
    if (value.dtype() != DType::kFloat32) continue;
    const Tensor initial = InitialValue(spec.initializer, spec.dtype, spec.shape, 1, spec.name);
    std::vector<float>& changes = trained.changes[spec.name];
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const auto at = static_cast<size_t>(i);
      changes.push_back(value.data<float>()[at] - initial.data<float>()[at]);
    }
  }
  return trained;
}

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
