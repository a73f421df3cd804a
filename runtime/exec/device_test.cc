// Runs programs on the CPU and on the fake device, which runs them late and in many orders.
#include "runtime/exec/device.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "runtime/exec/fake_device.h"
#include "runtime/exec/program.h"
#include "runtime/graph/ops.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;
using variables::VariableStore;

constexpr DType kF32 = DType::kFloat32;
constexpr uint64_t kSeeds = 20;

TEST(DeviceByName, KnowsTheDevices) {
  EXPECT_EQ(DeviceByName("cpu")->name, "/device:CPU:0");
  EXPECT_EQ(DeviceByName("fake")->name, "/device:FAKE:0");
  EXPECT_FALSE(DeviceByName("fake:12")->runtime->immediate());
  EXPECT_TRUE(DeviceByName("fake:12")->for_tests);
  EXPECT_FALSE(DeviceByName("cpu")->for_tests);
  for (const char* name : {"", "gpu", "fake:", "fake:x", "fake:1x", "fake:-1", "CPU"}) {
    EXPECT_EQ(Message(DeviceByName(name).status()),
              StrCat("device ", name,
                     ": expected auto, cpu, cuda, fake or fake:SEED, where SEED is a number "
                     "such as 7"));
  }
}

// A program on a device, and the variables that it uses.
class DeviceTest {
 public:
  explicit DeviceTest(Device device)
      : device_(std::move(device)), store_(device_.row_stride, device_.runtime) {}

  variables::Variable* Create(const char* name, const Tensor& value) {
    auto variable =
        store_.Create(name, value.dtype(), value.shape(), variables::Kind::kMovingStatistic);
    EXPECT_EQ((*variable)->FromTensor(value), OkStatus());
    return *variable;
  }
  std::unique_ptr<Program> Compiled(Builder b, std::vector<std::string> announced = {}) {
    const auto graph = std::move(b).Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    auto program = Compile(*graph, store_, device_, {.announced = std::move(announced)});
    EXPECT_TRUE(program.ok()) << program.status();
    return *std::move(program);
  }

 private:
  Device device_;
  VariableStore store_;
};

std::vector<float> Floats(const Tensor& tensor) {
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}
std::vector<float> Floats(const Program& program, const char* fetch) {
  const auto values = program.Fetch<float>(program.FindFetch(fetch));
  return {values.begin(), values.end()};
}

// Returns a builder with a graph that adds x to the variable `sum`, and computes y = 2x + the
// previous sum.
Builder Adding() {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output sum = ReadVariable(b, "sum", kF32, {2});
  b.AddFetch("y", Add(b, Mul(b, x, Const(b, Tensor::Of<float>({2}, {2, 2}))), sum));
  b.AddFetch("x", x);
  AssignAdd(b, "sum", x);
  return b;
}

std::vector<Device> Devices() {
  std::vector<Device> devices{CpuDevice()};
  for (uint64_t seed = 0; seed < kSeeds; ++seed) devices.push_back(FakeDevice(seed));
  return devices;
}

TEST(Runs, FollowEachOtherWhileTwoAreInProgress) {
  for (const Device& device : Devices()) {
    DeviceTest test(device);
    const variables::Variable* sum = test.Create("sum", Tensor::Of<float>({2}, {1, 2}));
    const auto program = test.Compiled(Adding());
    const Tensor one = Tensor::Of<float>({2}, {10, 20}), two = Tensor::Of<float>({2}, {100, 200});
    for (int i = 0; i < 3; ++i) {
      auto first = program->Start(std::array{Feed::Of(one)});
      auto second = program->Start(std::array{Feed::Of(two)});
      ASSERT_TRUE(first.ok() && second.ok());
      const float before = static_cast<float>(1 + 110 * i);
      ASSERT_EQ(first->Wait(), OkStatus());
      EXPECT_EQ(Floats(*program, "y"), (std::vector<float>{20 + before, 40 + 2 * before}));
      EXPECT_EQ(Floats(*program, "x"), Floats(one));
      ASSERT_EQ(second->Wait(), OkStatus());
      EXPECT_EQ(Floats(*program, "y"), (std::vector<float>{210 + before, 420 + 2 * before}));
    }
    EXPECT_EQ(Floats(sum->ToTensor()), (std::vector<float>{331, 662}));
    EXPECT_EQ(sum->version(), 7) << "FromTensor, and each run";
  }
}

TEST(Runs, AreStartedWhileAnotherIsInProgress) {
  for (const Device& device : Devices()) {
    DeviceTest test(device);
    const variables::Variable* sum = test.Create("sum", Tensor::Of<float>({2}, {0, 0}));
    const auto program = test.Compiled(Adding());
    std::vector<Tensor> feeds;
    for (int i = 0; i < 8; ++i) feeds.push_back(Tensor::Of<float>({2}, {1.0F + i, 0}));
    std::vector<Ticket> tickets{*program->Start(std::array{Feed::Of(feeds[0])})};
    for (size_t i = 1; i < feeds.size(); ++i) {
      tickets.push_back(*program->Start(std::array{Feed::Of(feeds[i])}));
      ASSERT_EQ(tickets[i - 1].Wait(), OkStatus());
      EXPECT_EQ(Floats(*program, "x"), Floats(feeds[i - 1]));
    }
    ASSERT_EQ(tickets.back().Wait(), OkStatus());
    EXPECT_EQ(Floats(sum->ToTensor())[0], 36);
  }
}

TEST(Runs, AreRefusedOutOfOrder) {
  for (const Device& device : {CpuDevice(), FakeDevice(1)}) {
    DeviceTest test(device);
    test.Create("sum", Tensor::Of<float>({2}, {0, 0}));
    const auto program = test.Compiled(Adding());
    const Tensor x = Tensor::Of<float>({2}, {1, 2});
    Ticket first = *program->Start(std::array{Feed::Of(x)});
    Ticket second = *program->Start(std::array{Feed::Of(x)});
    EXPECT_EQ(Message(program->Start(std::array{Feed::Of(x)}).status()),
              "2 runs are in progress; wait for the oldest one first");
    EXPECT_EQ(Message(second.Wait()), "run 2 of the program is not the oldest in progress: 1 is");
    EXPECT_EQ(first.Wait(), OkStatus());
    EXPECT_EQ(second.Wait(), OkStatus());
    EXPECT_EQ(Message(second.Wait()),
              "run 2 of the program is not the oldest in progress: none is");
  }
}

// The fake device would abort the process if the program freed its memory while operations may use
// it.
TEST(Runs, MayBeInProgressWhenTheProgramIsDestroyed) {
  for (const Device& device : Devices()) {
    DeviceTest test(device);
    test.Create("sum", Tensor::Of<float>({2}, {0, 0}));
    const auto program = test.Compiled(Adding());
    const Tensor x = Tensor::Of<float>({2}, {1, 2});
    ASSERT_TRUE(program->Start(std::array{Feed::Of(x)}).ok());
    ASSERT_TRUE(program->Start(std::array{Feed::Of(x)}).ok());
  }
}

TEST(Runs, KeepTheAddressesOfFetches) {
  for (const Device& device : {CpuDevice(), FakeDevice(1)}) {
    DeviceTest test(device);
    test.Create("sum", Tensor::Of<float>({2}, {0, 0}));
    const auto program = test.Compiled(Adding());
    const auto before = program->FetchBytes(0);
    EXPECT_EQ(Floats(*program, "y"), (std::vector<float>{0, 0}));
    const Tensor x = Tensor::Of<float>({2}, {1, 2});
    for (int i = 0; i < 3; ++i) ASSERT_EQ(program->Run(std::array{Feed::Of(x)}), OkStatus());
    EXPECT_EQ(program->FetchBytes(0).data(), before.data());
  }
}

TEST(Runs, AnnounceFinalValues) {
  for (const Device& device : Devices()) {
    DeviceTest test(device);
    test.Create("sum", Tensor::Of<float>({2}, {0, 0}));
    Builder b;
    const Output x = Placeholder(b, "x", kF32, {2});
    const Output early = Exp(b, x);
    b.AddFetch("early", early);
    b.AddFetch("late", Sum(b, Mul(b, early, early), {}));
    const auto program = test.Compiled(std::move(b), {"early", "late"});
    const Tensor zeros = Tensor::Of<float>({2}, {0, 0});
    std::vector<std::string> announced;
    ASSERT_EQ(
        program->Run(std::array{Feed::Of(zeros)},
                     [&](int fetch) {
                       announced.push_back(program->fetches()[static_cast<size_t>(fetch)].name);
                       EXPECT_EQ(program->Fetch<float>(fetch)[0], fetch == 0 ? 1 : 2);
                     }),
        OkStatus());
    EXPECT_EQ(announced, (std::vector<std::string>{"early", "late"}));
  }
}

TEST(Runs, StopAtTheOpThatFails) {
  for (const Device& device : Devices()) {
    DeviceTest test(device);
    test.Create("table", Tensor::Of<float>({2, 1}, {5, 6}));
    const variables::Variable* sum = test.Create("sum", Tensor::Of<float>({1, 1}, {0}));
    Builder b;
    const Output ids = Placeholder(b, "ids", DType::kInt64, {1});
    const Output row = Gather(b, ReadVariable(b, "table", kF32, {2, 1}), ids);
    AssignAdd(b, "sum", row);
    b.AddFetch("row", row);
    const auto program = test.Compiled(std::move(b), {"row"});
    const int64_t good = 1, bad = 2;
    int announced = 0;
    Ticket first = *program->Start(std::array{Feed::Of(std::span<const int64_t>(&bad, 1))});
    Ticket second = *program->Start(std::array{Feed::Of(std::span<const int64_t>(&good, 1))});
    const Status failed = first.Wait([&](int) { ++announced; });
    EXPECT_EQ(failed.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(failed).find("Gather: id 2 at position 0"), 0U) << failed;
    EXPECT_EQ(second.Wait([&](int) { ++announced; }), failed) << "started before the first failed";
    EXPECT_EQ(announced, 0);
    EXPECT_EQ(Floats(sum->ToTensor()), (std::vector<float>{0}));
    Ticket third = *program->Start(std::array{Feed::Of(std::span<const int64_t>(&good, 1))});
    EXPECT_EQ(third.Wait([&](int) { ++announced; }), OkStatus()) << "a run of its own";
    EXPECT_EQ(announced, 1);
    EXPECT_EQ(Floats(sum->ToTensor()), (std::vector<float>{6}));
  }
}

// The error belongs to the second run, even if the device has executed both before the first Wait.
TEST(Runs, AreNotStoppedByALaterOne) {
  for (const Device& device : Devices()) {
    DeviceTest test(device);
    const variables::Variable* sum = test.Create("sum", Tensor::Of<float>({}, {0}));
    Builder b;
    const Output x = Placeholder(b, "x", kF32, {});
    b.AddFetch("x", b.Add("CheckNumerics", {x}, {{"message", std::string("x")}}));
    AssignAdd(b, "sum", x);
    const auto program = test.Compiled(std::move(b));
    const float good = 1, bad = std::numeric_limits<float>::infinity();
    for (int round = 1; round <= 3; ++round) {
      Ticket first = *program->Start(std::array{Feed::Of(good)});
      Ticket second = *program->Start(std::array{Feed::Of(bad)});
      EXPECT_EQ(first.Wait(), OkStatus());
      EXPECT_EQ(second.Wait().code(), StatusCode::kAborted);
      EXPECT_EQ(Floats(sum->ToTensor()), (std::vector<float>{static_cast<float>(round)}));
    }
  }
}

// A total in float64 does not lose small float32 values, as one in float32 would.
TEST(Variables, OfDoublesAddUpFloats) {
  for (const Device& device : Devices()) {
    DeviceTest test(device);
    const variables::Variable* sum = test.Create("sum", Tensor::Of<double>({}, {16777216}));
    Builder b;
    AssignAdd(b, "sum", Placeholder(b, "x", kF32, {}));
    const auto program = test.Compiled(std::move(b));
    const float one = 1;
    for (int i = 0; i < 3; ++i) ASSERT_EQ(program->Run(std::array{Feed::Of(one)}), OkStatus());
    EXPECT_EQ(sum->ToTensor().data<double>()[0], 16777219);
  }
}

TEST(Compile, RefusesVariablesOfAnotherDevice) {
  const auto graph = Adding().Finish();
  VariableStore store;
  ASSERT_TRUE(store.Create("sum", kF32, {2}, variables::Kind::kTrainable).ok());
  const Status status = Compile(*graph, store, FakeDevice(1)).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(status).find("variable sum is in the memory of another device than "
                                 "/device:FAKE:0"),
            std::string::npos)
      << status;
}

TEST(Kernels, OfTheFakeDeviceRefuseOperandsInHostMemory) {
  kernels::KernelRequest request{
      "Exp", {}, {kernels::Operand::Dense(kF32, {2})}, {kernels::Operand::Dense(kF32, {2})}};
  const Device fake = FakeDevice(1);
  EXPECT_TRUE(fake.kernels->Prepare(request).ok());
  request.inputs[0].memory = device::MemoryKind::kHost;
  EXPECT_TRUE(CpuDevice().kernels->Prepare(request).ok());
  EXPECT_EQ(Message(fake.kernels->Prepare(request).status()),
            "Exp(float32[2]) -> float32[2]: an input is in host memory, but the kernels of device "
            "FAKE access only device memory: copy it there first");
}

TEST(Variables, AreCopiedFromAndToTheDevice) {
  DeviceTest test(FakeDevice(1));
  variables::Variable* const v = test.Create("v", Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  EXPECT_NE(v->Memory().bytes().data(), v->data());
  Tensor copy(kF32, {2, 2});
  EXPECT_TRUE(v->BeginCopy(copy)->finished());
  const std::array<float, 1> nine = {9};
  EXPECT_EQ(v->CopyIn(4, std::as_bytes(std::span(nine))), OkStatus());
  EXPECT_EQ(Floats(copy), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Floats(v->ToTensor()), (std::vector<float>{1, 9, 3, 4}));
}

}  // namespace
}  // namespace tfjob::exec
