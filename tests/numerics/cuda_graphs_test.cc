// Counts what a training step submits to a GPU: captured operations, launches of graphs, and copies
// of the inputs. The fake driver records them; most programs are only captured and not run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/device/cuda/fake_driver.h"
#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/exec/program.h"
#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/build.h"
#include "runtime/selftest/model_check.h"
#include "runtime/variables/variable_store.h"
#include "tests/numerics/example_model.h"

namespace tfjob::model {
namespace {

using device::TimedOperation;
using optimizer::Optimizer;

// The convolutional network of TensorFlow's tutorial on images ("CNN", CIFAR-10).
constexpr char kConvolutional[] = R"(
layers:
  - InputLayer: {batch_shape: [null, 32, 32, 3]}
  - Conv2D: {filters: 32, kernel_size: 3, activation: relu}
  - MaxPooling2D:
  - Conv2D: {filters: 64, kernel_size: 3, activation: relu}
  - MaxPooling2D:
  - Conv2D: {filters: 64, kernel_size: 3, activation: relu}
  - Flatten:
  - Dense: {units: 64, activation: relu}
  - Dense: {units: 10}
)";
constexpr char kPerceptron[] = R"(
layers:
  - InputLayer: {batch_shape: [null, 784]}
  - Dense: {units: 512, activation: relu}
  - Dense: {units: 512, activation: relu}
  - Dense: {units: 10}
)";

BuiltGraph BuildLayers(const char* layers, const Shape& example, int64_t batch,
                       const Optimizer& optimizer) {
  const Json file = ReadDocument(layers, "layers");
  const auto model = ReadLayers(JsonField(file)["layers"]);
  EXPECT_TRUE(model.ok()) << model.status();
  const BuildOptions options{
      .batch_size = batch,
      .features = {{DType::kFloat32, example}},
      .objectives = {{.loss = {.kind = LossKind::kSparseCategoricalCrossentropy,
                               .from_logits = true},
                      .metrics = {Metric::kAccuracy},
                      .labels = {DType::kInt64, {}}}},
      .optimizer = optimizer};
  auto built = Build(*model, options);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

BuiltGraph Perceptron(int64_t batch, const Optimizer& optimizer) {
  return BuildLayers(kPerceptron, Shape({784}), batch, optimizer);
}

std::vector<Optimizer> Optimizers() {
  auto sgd = Optimizer::Default(optimizer::Kind::kSgd), momentum = sgd;
  momentum.momentum = 0.9;
  auto adam = Optimizer::Default(optimizer::Kind::kAdam), scheduled = adam;
  scheduled.schedule.decay = optimizer::Decay::kCosine;
  scheduled.schedule.decay_steps = 100;
  return {sgd, momentum, adam, scheduled};
}

// Compiles the graph with these fetches or, if there are none, with all. Returns the operations
// that each step launches.
std::vector<std::string> Captured(const BuiltGraph& built,
                                  const std::vector<std::string>& fetches = {}) {
  const exec::Device device = exec::EmulatedCudaDevice(/*seed=*/1);
  variables::VariableStore store(device.row_stride, device.runtime);
  for (const VariableSpec& spec : built.variables)
    EXPECT_TRUE(store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable).ok());
  const auto program = exec::Compile(built.graph, store, device, {.fetches = fetches});
  EXPECT_TRUE(program.ok()) << program.status();
  const auto graphs = device::cuda::FakeDriverGraphs();
  // One graph for each run that may be in progress.
  EXPECT_EQ(graphs.size(), exec::kMaxRuns);
  EXPECT_EQ(graphs.front(), graphs.back());
  return graphs.empty() ? std::vector<std::string>() : graphs.front();
}

// A step that returns the loss, as in the benchmark of docs/gpu.md ("Speed"). A library call counts
// as one operation. Compiling runs each product once on the fake library, which is slow for a batch
// of 128, especially in builds with a sanitizer.
TEST(CudaGraphs, APerceptronNeedsFewOperations) {
  const std::vector<Optimizer> optimizers = Optimizers();
  for (const Optimizer& optimizer : optimizers) {
    const bool whole = &optimizer == &optimizers.back() && kernels::cuda::shadow::Enabled();
    const std::vector<std::string> operations =
        Captured(Perceptron(whole ? 128 : 4, optimizer), {kLoss});
    EXPECT_LE(operations.size(), 16U) << absl::StrJoin(operations, ", ");
    EXPECT_EQ(std::ranges::count(operations, "cublasLtMatmul"), 8);
    EXPECT_EQ(
        std::ranges::count(operations, "ApplyAdam") + std::ranges::count(operations, "ApplySgd"),
        1);
    EXPECT_LE(std::ranges::count(operations, "LearningRate"), 1);
  }
}

// The trainer also fetches the sum of the losses and the number of right predictions.
TEST(CudaGraphs, MetricsAddFewOperations) {
  const std::vector<std::string> operations = Captured(Perceptron(4, Optimizers().front()));
  EXPECT_LE(operations.size(), 22U) << absl::StrJoin(operations, ", ");
}

TEST(CudaGraphs, AStepIsOneLaunch) {
  for (const Optimizer& optimizer : Optimizers()) {
    constexpr int kSteps = 3;
    const BuiltGraph built = Perceptron(2, optimizer);
    const exec::Device device = exec::EmulatedCudaDevice(/*seed=*/1);
    const auto trained = selftest::Train(built, device, kSteps, selftest::Steps::kOverlapped);
    ASSERT_TRUE(trained.ok()) << trained.status();
    EXPECT_EQ(device::cuda::FakeDriverCalls()["cuGraphLaunch"], kSteps);
  }
}

// The program keeps the layout of images, with channels last, from the input to the gradients.
TEST(CudaGraphs, AConvolutionalNetworkNeedsNoOtherLayout) {
  const BuiltGraph built = BuildLayers(kConvolutional, Shape({32, 32, 3}), 4,
                                       Optimizer::Default(optimizer::Kind::kAdam));
  const std::vector<std::string> operations = Captured(built);
  EXPECT_GT(std::ranges::count(operations, "cublasLtMatmul"), 10)
      << absl::StrJoin(operations, ", ");
  EXPECT_EQ(std::ranges::count(operations, "Transpose"), 0) << absl::StrJoin(operations, ", ");
  for (const graph::Node& node : built.graph.nodes()) EXPECT_NE(node.op, "Transpose");
}

// An operation takes one second, and the copy of a batch of inputs takes ten.
double SecondsOf(const device::Operation& operation) {
  const bool copies = operation.name == "cuMemcpyAsync";
  return copies && operation.accesses[0].bytes > 1000 ? 10 : 1;
}

// Returns the fraction of the time during which the stream of the kernels is busy, from the end of
// the first training step to the end of the last one.
double BusyFraction(selftest::Steps steps) {
  constexpr int kSteps = 12;
  const BuiltGraph built = Perceptron(2, Optimizer::Default(optimizer::Kind::kAdam));
  const exec::Device device = exec::EmulatedCudaDevice(
      /*seed=*/1, [](device::cuda::FakeMachine& machine) { machine.seconds = SecondsOf; });
  EXPECT_TRUE(selftest::Train(built, device, kSteps, steps).ok());
  const std::vector<TimedOperation> timeline = device::cuda::FakeDriverTimeline();
  const auto first = std::ranges::find(timeline, "ApplyAdam", &TimedOperation::name);
  if (first == timeline.end()) return 0;
  double busy = 0, start = first->end, end = first->end;
  for (auto each = first + 1; each != timeline.end(); ++each) {
    if (each->stream != first->stream) continue;
    busy += each->end - each->start;
    end = std::max(end, each->end);
  }
  return busy / (end - start);
}

// "Input copies hidden" of the table in docs/gpu.md: at least 97 % of the speed without copies.
TEST(CudaGraphs, InputsAreCopiedWhileAnEarlierStepComputes) {
  EXPECT_GE(BusyFraction(selftest::Steps::kOverlapped), 0.97);
  EXPECT_LE(BusyFraction(selftest::Steps::kOneByOne), 0.8) << "then there is no overlap";
}

}  // namespace
}  // namespace tfjob::model
