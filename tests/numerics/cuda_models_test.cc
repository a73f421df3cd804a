// Trains the example models on a simulated GPU (exec/emulated_cuda_device.h) and on the CPU. Every
// op of their graphs must have a CUDA kernel, and both devices must compute the same losses and
// variables. Some models are also trained in mixed precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/build.h"
#include "runtime/selftest/example_models.h"
#include "runtime/selftest/model_check.h"
#include "tests/numerics/example_model.h"

namespace tfjob::model {
namespace {

using selftest::ExampleModel;
using selftest::Tolerance;

constexpr int kSteps = 3;

void ExpectTrainsLikeTheCpu(const ExampleModel& example, const Model& model,
                            const Tolerance& tolerance = {}) {
  const auto built = BuildExampleModel(example, model);
  ASSERT_TRUE(built.ok()) << built.status();
  const auto expected = selftest::Train(*built, exec::CpuDevice(), kSteps);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = selftest::Train(*built, exec::EmulatedCudaDevice(/*seed=*/7), kSteps);
  ASSERT_TRUE(actual.ok()) << actual.status();
  EXPECT_EQ(CompareTrained(*actual, *expected, tolerance), OkStatus());
}

class CudaExamples : public testing::TestWithParam<ExampleModel> {};

TEST_P(CudaExamples, TrainLikeTheCpu) {
  const auto model = selftest::ReadExampleModel(GetParam().name);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectTrainsLikeTheCpu(GetParam(), *model);
}

INSTANTIATE_TEST_SUITE_P(, CudaExamples,
                         testing::ValuesIn(selftest::ExampleModels().begin(),
                                           selftest::ExampleModels().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Trains the model in bfloat16 and in float16, with a scaled loss. The devices add in different
// orders, so some activations and gradients differ in the last bit, that is, by 2^-8 (bfloat16) or
// 2^-11 (float16) of their size.
void ExpectTrainsLikeTheCpuInHalf(const ExampleModel& example, const Model& model) {
  for (const auto& [policy, bit] : {std::pair(DTypePolicy::kMixedBFloat16, 0x1p-8),
                                    std::pair(DTypePolicy::kMixedFloat16, 0x1p-11)}) {
    SCOPED_TRACE(Name(policy));
    Model mixed = model;
    ASSERT_TRUE(SetPolicy(mixed, policy));
    ExpectTrainsLikeTheCpu(example, mixed, {.losses = bit, .changes = 8 * bit});
  }
}

void ExpectTrainsLikeTheCpuInHalf(const ExampleModel& example, const std::string& layers) {
  const Json file = ReadDocument(layers, "layers");
  const auto model = ReadLayers(JsonField(file)["layers"]);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectTrainsLikeTheCpuInHalf(example, *model);
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

// Returns a layer of Keras' JSON that is called with the result of another layer.
std::string LayerOf(const std::string& module, const std::string& class_name,
                    const std::string& name, const std::string& options, const std::string& from) {
  const std::string history = StrCat(R"({"keras_history":[")", from, R"(",0,0]})");
  return StrCat(R"({"module":")", module, R"(","class_name":")", class_name, R"(","name":")", name,
                R"(","config":{"name":")", name, "\"", options,
                R"(},"inbound_nodes":[{"args":[{"class_name":"__keras_tensor__","config":)",
                history, R"(}],"kwargs":{}}]})");
}

// Returns a perceptron with approximate GELUs, as keras.ops.gelu computes them. cuBLASLt computes
// these together with products.
std::string PerceptronWithGelu() {
  const std::string layers = "keras.layers", functions = "keras.src.ops.nn";
  const std::string approximate = R"(,"approximate":true)";
  std::string json = R"({"class_name":"Functional","config":{"name":"gelu","layers":[)";
  json += R"({"module":"keras.layers","class_name":"InputLayer","name":"x","config":{"name":"x",)";
  json += R"("batch_shape":[null,9,5]},"inbound_nodes":[]},)";
  json += LayerOf(layers, "Dense", "a", R"(,"units":32)", "x") + ",";
  json += LayerOf(functions, "Gelu", "gelu_a", approximate, "a") + ",";
  json += LayerOf(layers, "Dense", "b", R"(,"units":24)", "gelu_a") + ",";
  json += LayerOf(functions, "Gelu", "gelu_b", approximate, "b") + ",";
  json += LayerOf(layers, "Flatten", "flat", "", "gelu_b") + ",";
  json += LayerOf(layers, "Dense", "logits", R"(,"units":10)", "flat");
  return json + R"(],"input_layers":[["x",0,0]],"output_layers":[["logits",0,0]]}})";
}

TEST(CudaModels, ApproximateGeluInMixedPrecision) {
  const auto model = ReadKerasJson(PerceptronWithGelu(), "gelu");
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectTrainsLikeTheCpuInHalf({"a perceptron", 13}, *model);
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
