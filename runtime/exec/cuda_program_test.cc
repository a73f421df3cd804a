// Trains small nets on a CUDA device with a simulated driver, library and GPU, and compares the
// results with those of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/device/cuda/fake_blas.h"
#include "runtime/device/cuda/fake_driver.h"
#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/window.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;
using variables::VariableStore;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI64 = DType::kInt64;
constexpr int64_t kBatch = 16, kIn = 20, kHidden = 32, kOut = 10;
constexpr int kSteps = 8;

const std::pair<const char*, Shape> kVariables[] = {
    {"w1", {kIn, kHidden}}, {"b1", {kHidden}}, {"w2", {kHidden, kOut}}, {"b2", {kOut}}};

// Builds a training step of a classifier with one hidden layer.
Builder Net(const optimizer::Optimizer& optimizer) {
  Builder b;
  const Output pixels = Placeholder(b, "pixels", DType::kUInt8, {kBatch, kIn});
  const Output labels = Placeholder(b, "labels", kI64, {kBatch});
  const Output step = Placeholder(b, "step", kI64, {});
  std::vector<Output> v;
  for (const auto& [name, shape] : kVariables) v.push_back(ReadVariable(b, name, kF32, shape));
  const Output x = Mul(b, Cast(b, pixels, kF32), Scalar(b, kF32, 1.0 / 255));
  const Output hidden = Relu(b, BiasAdd(b, MatMul(b, x, v[0]), v[1]));
  const Output logits = BiasAdd(b, MatMul(b, hidden, v[2]), v[3]);
  const Output loss = Mean(b, SparseSoftmaxCrossEntropyWithLogits(b, logits, labels).loss, {});
  b.AddFetch("loss", loss);
  b.AddFetch("probabilities", Softmax(b, logits));
  const std::vector<Output> gradients = Gradients(b, loss, v);
  for (size_t i = 0; i < v.size(); ++i) {
    // A gradient that is not fetched is computed together with its plain SGD step
    // (MatMulAccumulate).
    if (i == 2) b.AddFetch("gradient/w2", gradients[i]);
    ApplyOptimizer(b, kVariables[i].first, gradients[i], step, ToAttributes(optimizer));
  }
  return b;
}

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> values;  // of the last step's fetches, then of the variables
};

std::vector<float> Floats(std::span<const float> values) {
  return {values.begin(), values.end()};
}

void CreateVariables(VariableStore& store) {
  for (const auto& [name, shape] : kVariables) {
    Tensor initial(kF32, shape);
    float x = 1;
    for (float& value : initial.data<float>()) value = 0.3F * std::sin(x += 1.7F);
    const auto variable = store.Create(name, kF32, shape, variables::Kind::kTrainable);
    ASSERT_TRUE((*variable)->FromTensor(initial).ok());
  }
}

// Trains with two runs in progress, whose feeds differ.
Trained Train(const Device& device, const optimizer::Optimizer& optimizer) {
  Trained trained;
  VariableStore store(device.row_stride, device.runtime);
  CreateVariables(store);
  const auto graph = Net(optimizer).Finish();
  auto compiled = Compile(*graph, store, device, {.announced = {"gradient/w2", "loss"}});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return trained;
  Program& program = **compiled;
  std::array<std::vector<uint8_t>, kSteps> pixels;
  std::array<std::vector<int64_t>, kSteps> labels;
  std::array<int64_t, kSteps> steps{};
  const auto start = [&](size_t i) {
    for (int64_t e = 0; e < kBatch; ++e) labels[i].push_back((e * 3) % kOut);
    for (int64_t p = 0; p < kBatch * kIn; ++p) {
      const bool bright = p % kIn % kOut == labels[i][static_cast<size_t>(p / kIn)];
      const int64_t noise = (p * 37 + static_cast<int64_t>(i) * 11) % 50;
      pixels[i].push_back(static_cast<uint8_t>(bright ? 200 + noise : noise));
    }
    steps[i] = static_cast<int64_t>(i);
    return *program.Start(std::array{Feed::Of(std::span(pixels[i])), Feed::Of(std::span(labels[i])),
                                     Feed::Of(steps[i])});
  };
  std::vector<Ticket> tickets{start(0)};
  for (size_t i = 0; i < kSteps; ++i) {
    if (i + 1 < kSteps) tickets.push_back(start(i + 1));
    EXPECT_EQ(tickets[i].Wait(), OkStatus());
    trained.losses.push_back(program.Fetch<float>(program.FindFetch("loss"))[0]);
  }
  for (size_t i = 0; i < program.fetches().size(); ++i)
    trained.values.push_back(Floats(program.Fetch<float>(static_cast<int>(i))));
  for (const auto& [name, shape] : kVariables)
    trained.values.push_back(Floats(store.Find(name)->ToTensor().data<float>()));
  return trained;
}

void ExpectClose(const Trained& actual, const Trained& expected) {
  EXPECT_THAT(actual.losses, testing::Pointwise(testing::FloatNear(2e-5F), expected.losses));
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (size_t i = 0; i < actual.values.size(); ++i) {
    EXPECT_THAT(actual.values[i], testing::Pointwise(testing::FloatNear(5e-5F), expected.values[i]))
        << i;
  }
}

std::vector<optimizer::Optimizer> Optimizers() {
  optimizer::Optimizer sgd, momentum;
  sgd.learning_rate = 0.5;
  momentum.learning_rate = 0.1;
  momentum.momentum = 0.9;
  momentum.nesterov = true;
  auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  adam.learning_rate = 0.01;
  return {sgd, momentum, adam};
}

TEST(CudaProgram, TrainsLikeTheCpu) {
  for (const optimizer::Optimizer& optimizer : Optimizers()) {
    const Trained expected = Train(CpuDevice(), optimizer);
    ASSERT_LT(expected.losses.back(), 0.9F * expected.losses.front());
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(StrCat(Name(optimizer.kind), ", seed ", seed));
      ExpectClose(Train(EmulatedCudaDevice(seed), optimizer), expected);
    }
  }
}

// Only the GPU's library computes the gradient of a bias together with that of its layer's matrix.
TEST(CudaProgram, ComputesTheGradientsOfALayerTogether) {
  for (const bool gpu : {false, true}) {
    const Device device = gpu ? EmulatedCudaDevice(1) : CpuDevice();
    VariableStore store(device.row_stride, device.runtime);
    CreateVariables(store);
    const auto graph = Net(Optimizers().back()).Finish();
    const auto program = Compile(*graph, store, device);
    ASSERT_TRUE(program.ok()) << program.status();
    const std::string text = (*program)->ToString();
    EXPECT_EQ(text.find("MatMulBiasGrad(") != std::string::npos, gpu) << text;
    EXPECT_EQ(text.find("BiasAddGrad(") != std::string::npos, !gpu) << text;
  }
}

// The results must be bit-identical, in whatever order the GPU runs threads and streams.
TEST(CudaProgram, IsReproducible) {
  const auto optimizer = Optimizers().back();
  const Trained first = Train(EmulatedCudaDevice(1), optimizer);
  const Trained second = Train(EmulatedCudaDevice(9), optimizer);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.values, second.values);
}

// Each slot captures every segment once; a step only launches the captured segments.
TEST(CudaProgram, ReplaysItsSegments) {
  const Device device = EmulatedCudaDevice(1);
  Train(device, Optimizers().front());
  auto calls = device::cuda::FakeDriverCalls();
  constexpr int kSegments = 3;  // one per announced fetch, and one for the remaining ops
  EXPECT_EQ(calls["cuGraphInstantiateWithFlags"], kSegments * static_cast<int>(kMaxRuns));
  EXPECT_EQ(calls["cuGraphLaunch"], kSegments * kSteps);
  EXPECT_EQ(device::cuda::FakeBlasRefusal(), "");
}

TEST(CudaProgram, ReturnsTheLibrarysHandles) {
  Train(EmulatedCudaDevice(1), Optimizers().front());
  EXPECT_EQ(device::cuda::FakeBlasHandles(), 0);
}

TEST(CudaProgram, AnOpThatHasNoKernelForItsOperandsIsNamed) {
  const Device device = EmulatedCudaDevice(1);
  VariableStore store(device.row_stride, device.runtime);
  Builder b;
  const Output x = Placeholder(b, "x", DType::kFloat64, {1, 2, 2, 1});
  b.AddFetch("y", MaxPool(b, x, Window()));
  const auto graph = std::move(b).Finish();
  EXPECT_THAT(
      Message(Compile(*graph, store, device).status()),
      testing::AllOf(testing::StartsWith("node MaxPool: device CUDA: MaxPool(float64[1,2,2,1]"),
                     testing::HasSubstr("no kernel for dtype float64")));
  auto scheduled = Optimizers().front();
  scheduled.schedule.decay = optimizer::Decay::kPiecewiseConstant;
  for (int i = 0; i < 65; ++i) scheduled.schedule.boundaries.push_back(i);
  scheduled.schedule.values.assign(66, 0.1);
  CreateVariables(store);
  const auto net = Net(scheduled).Finish();
  EXPECT_THAT(Message(Compile(*net, store, device).status()),
              testing::HasSubstr("a learning-rate schedule of more than 64 boundaries"));
}

Tensor Ids(int64_t first, int64_t second) {
  return Tensor::Of<int64_t>({2}, {first, second});
}

// Adds rows of a table to a sum, and trains the table and a matrix w. The SGD step of w must not be
// fused into a MatMulAccumulate, because that op could not leave w unchanged if the run fails.
Builder Lookup() {
  Builder b;
  const Output ids = Placeholder(b, "ids", kI64, {2});
  const Output step = Placeholder(b, "step", kI64, {});
  const Output table = ReadVariable(b, "table", kF32, {3, 2});
  const Output rows = Gather(b, table, ids);
  b.AddFetch("rows", rows);
  AssignAdd(b, "sum", rows);
  optimizer::Optimizer sgd;
  sgd.learning_rate = 0.5;
  const Output gradient = Gradients(b, Sum(b, rows, {}), std::vector{table})[0];
  ApplyOptimizer(b, "table", gradient, step, ToAttributes(sgd));
  const Output w = ReadVariable(b, "w", kF32, {2, 1});
  const Output gradient_of_w = Gradients(b, Sum(b, MatMul(b, rows, w), {}), std::vector{w})[0];
  ApplyOptimizer(b, "w", gradient_of_w, step, ToAttributes(sgd));
  return b;
}

// The kernels run long after the host has submitted them, so an invalid id is detected only when
// the kernel that checks it runs. A run with an invalid id must change no variable.
TEST(CudaProgram, AnIdThatIsNoRowChangesNoVariable) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Device device = EmulatedCudaDevice(seed);
    VariableStore store(device.row_stride, device.runtime);
    const auto create = [&store](const char* name, const Tensor& value) {
      auto variable = store.Create(name, kF32, value.shape(), variables::Kind::kTrainable);
      EXPECT_EQ((*variable)->FromTensor(value), OkStatus());
    };
    create("table", Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
    create("sum", Tensor::Of<float>({2, 2}, {0, 0, 0, 0}));
    create("w", Tensor::Of<float>({2, 1}, {0, 0}));
    const auto graph = Lookup().Finish();
    const auto program = Compile(*graph, store, device, {.announced = {"rows"}});
    ASSERT_TRUE(program.ok()) << program.status();
    const Tensor bad = Ids(0, 9), good = Ids(1, 1);
    const int64_t step = 0;
    int announced = 0;
    const auto start = [&](const Tensor& ids) {
      return *(*program)->Start(std::array{Feed::Of(ids), Feed::Of(step)});
    };
    for (int round = 0; round < 2; ++round) {
      Ticket first = start(bad), second = start(good);
      EXPECT_EQ(first.Wait([&](int) { ++announced; }),
                InvalidArgument("Gather: id 9 at position 1 of the batch is no row of table: "
                                "expected 0 to 2"));
      // The second run was started before the first had failed, so it changes no variable either.
      EXPECT_EQ(second.Wait([&](int) { ++announced; }).code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(announced, round);
      EXPECT_EQ(start(good).Wait([&](int) { ++announced; }), OkStatus());
      EXPECT_EQ(announced, round + 1);
    }
    EXPECT_EQ(start(good).Wait(), OkStatus()) << "the second run's memory, without its error";
    // Each successful run has added row 1 to the sum, and subtracted 0.5 from the row for each of
    // its two uses.
    EXPECT_THAT(Floats(store.Find("table")->ToTensor().data<float>()),
                testing::ElementsAre(1, 2, 0, 1, 5, 6));
    EXPECT_THAT(Floats(store.Find("sum")->ToTensor().data<float>()),
                testing::ElementsAre(6, 9, 6, 9));
    EXPECT_THAT(Floats(store.Find("w")->ToTensor().data<float>()), testing::ElementsAre(-6, -9));
  }
}

// A write that precedes the check in the graph still runs after the check.
TEST(CudaProgram, ANumberThatIsNotFiniteChangesNoVariable) {
  for (const Device& device : {CpuDevice(), EmulatedCudaDevice(1)}) {
    SCOPED_TRACE(device.name);
    VariableStore store(device.row_stride, device.runtime);
    for (const char* name : {"count", "w"}) {
      auto variable = store.Create(name, kF32, {3}, variables::Kind::kTrainable);
      EXPECT_EQ((*variable)->FromTensor(Tensor::Of<float>({3}, {0, 0, 0})), OkStatus());
    }
    Builder b;
    const Output x = Placeholder(b, "x", kF32, {3}), step = Placeholder(b, "step", kI64, {});
    AssignAdd(b, "count", x);
    const Output checked = b.Add("CheckNumerics", {x}, {{"message", std::string("x")}});
    b.AddFetch("sum", Sum(b, x, {}));
    optimizer::Optimizer sgd;
    sgd.learning_rate = 1;
    ApplyOptimizer(b, "w", checked, step, ToAttributes(sgd));
    const auto graph = std::move(b).Finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto program = Compile(*graph, store, device);
    ASSERT_TRUE(program.ok()) << program.status();
    const auto run = [&](std::initializer_list<float> values) {
      const int64_t number = 0;
      const auto feed = Tensor::Of<float>({3}, values);
      return (*program)->Run(std::array{Feed::Of(feed), Feed::Of(number)});
    };
    const auto values = [&store](const char* name) {
      return Floats(store.Find(name)->ToTensor().data<float>());
    };
    EXPECT_EQ(run({1, INFINITY, 2}), Aborted("CheckNumerics: x contains NaN or infinity"));
    EXPECT_THAT(values("count"), testing::ElementsAre(0, 0, 0));
    EXPECT_THAT(values("w"), testing::ElementsAre(0, 0, 0));
    EXPECT_EQ(run({1, 5, 2}), OkStatus());
    EXPECT_THAT(values("count"), testing::ElementsAre(1, 5, 2));
    EXPECT_THAT(values("w"), testing::ElementsAre(-1, -5, -2));
  }
}

// Reads rows of a table in a loop. A write to a variable precedes the loop, and another follows it.
Builder LookupInLoop() {
  Builder b;
  const Output ids = Placeholder(b, "ids", kI64, {2});
  const Output step = Placeholder(b, "step", kI64, {});
  const Output table = ReadVariable(b, "table", kF32, {3, 2});
  AssignAdd(b, "count", Scalar(b, kF32, 1));
  graph::ScanBuilder scan(b, 2);
  const Output id = scan.Sequence(Reshape(b, ids, {2, 1}));
  scan.Stack(Gather(scan.body(), scan.Invariant(table), id));
  const Output rows = Reshape(b, scan.Finish().outputs[0], {2, 2});
  b.AddFetch("rows", rows);
  optimizer::Optimizer sgd;
  sgd.learning_rate = 0.5;
  const Output w = ReadVariable(b, "w", kF32, {2, 1});
  const Output gradient = Gradients(b, Sum(b, MatMul(b, rows, w), {}), std::vector{w})[0];
  ApplyOptimizer(b, "w", gradient, step, ToAttributes(sgd));
  return b;
}

TEST(CudaProgram, AnIdThatIsNoRowInALoopChangesNoVariable) {
  for (const Device& device : {CpuDevice(), EmulatedCudaDevice(1)}) {
    SCOPED_TRACE(device.name);
    VariableStore store(device.row_stride, device.runtime);
    const auto create = [&store](const char* name, const Tensor& value) {
      auto variable = store.Create(name, kF32, value.shape(), variables::Kind::kTrainable);
      EXPECT_EQ((*variable)->FromTensor(value), OkStatus());
    };
    create("table", Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
    create("count", Tensor::Of<float>({}, {0}));
    create("w", Tensor::Of<float>({2, 1}, {0, 0}));
    const auto graph = LookupInLoop().Finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto program = Compile(*graph, store, device, {.announced = {"rows"}});
    ASSERT_TRUE(program.ok()) << program.status();
    int announced = 0;
    const auto run = [&](const Tensor& ids) {
      const int64_t step = 0;
      auto ticket = (*program)->Start(std::array{Feed::Of(ids), Feed::Of(step)});
      return ticket->Wait([&](int) { ++announced; });
    };
    const auto values = [&store](const char* name) {
      return Floats(store.Find(name)->ToTensor().data<float>());
    };
    EXPECT_EQ(run(Ids(0, 9)),
              InvalidArgument("Scan: id 9 at position 0 of the batch is no row of the table: "
                              "expected 0 to 2"));
    EXPECT_EQ(announced, 0);
    EXPECT_THAT(values("count"), testing::ElementsAre(0));
    EXPECT_THAT(values("w"), testing::ElementsAre(0, 0));
    EXPECT_EQ(run(Ids(1, 1)), OkStatus());
    EXPECT_EQ(announced, 1);
    EXPECT_THAT(values("count"), testing::ElementsAre(1));
    EXPECT_THAT(values("w"), testing::ElementsAre(-3, -4));
  }
}

// The first run of a kernel or an algorithm may load code. Loading is not allowed during a capture,
// so all kernels and algorithms must be loaded beforehand.
TEST(CudaProgram, LoadsItsKernelsBeforeItCaptures) {
  const Device device = EmulatedCudaDevice(1);
  const int loaded = device::cuda::FakeDriverCalls()["cuKernelGetFunction"];
  EXPECT_GT(loaded, 0);
  Train(device, Optimizers().front());
  EXPECT_EQ(device::cuda::FakeDriverCalls()["cuKernelGetFunction"], loaded);
}

}  // namespace
}  // namespace tfjob::exec
