// Tests the host's side of a CUDA device, that is, how programs use streams, events and pinned
// memory. Trains a tiny network in many seeded orders of the device's operations, and expects the
// same bits in each. Then plants mistakes, such as a wait that is missing, and expects that each of
// them is found.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {
namespace {

using device::DeviceRuntime;
using device::Memory;
using device::MemoryKind;
using graph::Builder;
using graph::Output;
using variables::VariableStore;

constexpr int64_t kBatch = 2, kIn = 3, kOut = 4;
constexpr size_t kSteps = 5;

// Builds a training step of a linear classifier.
Builder Net() {
  Builder b;
  const Output x = Placeholder(b, "x", DType::kFloat32, {kBatch, kIn});
  const Output labels = Placeholder(b, "labels", DType::kInt64, {kBatch});
  const Output step = Placeholder(b, "step", DType::kInt64, {});
  const Output w = ReadVariable(b, "w", DType::kFloat32, {kIn, kOut});
  const Output bias = ReadVariable(b, "bias", DType::kFloat32, {kOut});
  const Output logits = BiasAdd(b, MatMul(b, x, w), bias);
  const Output loss = Mean(b, SparseSoftmaxCrossEntropyWithLogits(b, logits, labels).loss, {});
  b.AddFetch("loss", loss);
  const std::vector<Output> gradients = Gradients(b, loss, std::vector{w, bias});
  b.AddFetch("gradient", gradients[0]);
  auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  ApplyOptimizer(b, "w", gradients[0], step, ToAttributes(adam));
  ApplyOptimizer(b, "bias", gradients[1], step, ToAttributes(adam));
  return b;
}

void CreateVariable(VariableStore& store, const char* name, const Shape& shape) {
  Tensor initial(DType::kFloat32, shape);
  float x = 1;
  for (float& value : initial.data<float>()) value = std::sin(x += 1.7F);
  const auto variable = store.Create(name, DType::kFloat32, shape, variables::Kind::kTrainable);
  ASSERT_TRUE((*variable)->FromTensor(initial).ok());
}

struct StepFeeds {
  std::array<float, kBatch * kIn> x{};
  std::array<int64_t, kBatch> labels{};
  int64_t step = 0;

  explicit StepFeeds(size_t number) : step(static_cast<int64_t>(number)) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(number * 7 + i));
    for (size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<int64_t>((number + i) % kOut);
  }
};

// Trains with two runs in progress, and calls `ended` when none is in progress any more. Returns
// the fetches of all steps and the trained variables.
StatusOr<std::vector<float>> Train(
    const Device& device, const std::function<void()>& ended = [] {}) {
  VariableStore store(device.row_stride, device.runtime);
  CreateVariable(store, "w", {kIn, kOut});
  CreateVariable(store, "bias", {kOut});
  const auto graph = Net().Finish();
  RETURN_IF_ERROR(graph.status());
  ASSIGN_OR_RETURN(const auto program, Compile(*graph, store, device, {.announced = {"gradient"}}));
  std::vector<std::unique_ptr<StepFeeds>> feeds;
  std::vector<Ticket> tickets;
  const auto start = [&]() -> Status {
    const StepFeeds& f = *feeds.emplace_back(std::make_unique<StepFeeds>(feeds.size()));
    ASSIGN_OR_RETURN(
        Ticket ticket,
        program->Start(std::array{Feed::Of(std::span<const float>(f.x)),
                                  Feed::Of(std::span<const int64_t>(f.labels)), Feed::Of(f.step)}));
    tickets.push_back(std::move(ticket));
    return OkStatus();
  };
  std::vector<float> results;
  const auto add = [&](std::span<const float> values) {
    results.insert(results.end(), values.begin(), values.end());
  };
  RETURN_IF_ERROR(start());
  for (size_t i = 0; i < kSteps; ++i) {
    if (i + 1 < kSteps) RETURN_IF_ERROR(start());
    RETURN_IF_ERROR(tickets[i].Wait([&](int fetch) { add(program->Fetch<float>(fetch)); }));
    add(program->Fetch<float>(program->FindFetch("loss")));
  }
  ended();
  for (const char* name : {"w", "bias"}) {
    const Tensor value = store.Find(name)->ToTensor();
    add(value.data<float>());
  }
  return results;
}

// Builds with a sanitizer are slow, so they test fewer orders.
TEST(CudaHost, EverySeededOrderGivesTheSameBits) {
  const uint64_t seeds = kernels::cuda::shadow::Enabled() ? 1000 : 20;
  const auto expected = Train(EmulatedCudaDevice(0));
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (uint64_t seed = 1; seed < seeds; ++seed) {
    const auto actual = Train(EmulatedCudaDevice(seed));
    ASSERT_TRUE(actual.ok()) << "seed " << seed << ": " << actual.status();
    ASSERT_EQ(*actual, *expected) << "seed " << seed;
  }
  std::printf("%d seeded orders\n", static_cast<int>(seeds));
}

enum class Mistake {
  kNone,
  kNoWait,         // a stream does not wait for an event
  kNoRecord,       // an event is not recorded
  kNoSynchronize,  // the host does not wait for an event, and reads a fetch early
  kReuseEarly,     // the host overwrites pinned memory that is still being copied to the device
};
constexpr std::array kMistakes = {
    std::pair(Mistake::kNoWait, "a stream does not wait"),
    std::pair(Mistake::kNoRecord, "an event is not recorded"),
    std::pair(Mistake::kNoSynchronize, "the host reads a fetch early"),
    std::pair(Mistake::kReuseEarly, "the host reuses a slot early")};

// A runtime that makes one mistake, at the n-th call at which it can be made.
class MistakenRuntime final : public DeviceRuntime {
 public:
  MistakenRuntime(std::shared_ptr<DeviceRuntime> runtime, Mistake mistake, int n)
      : runtime_(std::move(runtime)), mistake_(mistake), left_(n) {}

  // Makes no mistake from now on.
  void Stop() { mistake_ = Mistake::kNone; }
  // Returns whether there were enough calls to make the mistake.
  bool made() const { return left_ < 0; }

  bool immediate() const override { return false; }
  StatusOr<Memory> Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                            std::string_view name) override {
    ASSIGN_OR_RETURN(Memory memory, runtime_->Allocate(kind, bytes, contents, name));
    if (kind == MemoryKind::kPinned && name == "feeds") feeds_.push_back(memory.get());
    return memory;
  }
  StatusOr<std::unique_ptr<device::Stream>> NewStream() override { return runtime_->NewStream(); }
  StatusOr<std::unique_ptr<device::Event>> NewEvent() override { return runtime_->NewEvent(); }
  void Copy(void* to, const void* from, size_t bytes, device::Stream& stream) override {
    runtime_->Copy(to, from, bytes, stream);
    if (std::ranges::find(feeds_, from) != feeds_.end() && Now(Mistake::kReuseEarly))
      *static_cast<volatile char*>(const_cast<void*>(from)) = 1;
  }
  void Record(device::Event& event, device::Stream& stream) override {
    if (!Now(Mistake::kNoRecord)) runtime_->Record(event, stream);
  }
  void Wait(device::Stream& stream, const device::Event& event) override {
    if (!Now(Mistake::kNoWait)) runtime_->Wait(stream, event);
  }
  Status Synchronize(const device::Event& event) override {
    return Now(Mistake::kNoSynchronize) ? OkStatus() : runtime_->Synchronize(event);
  }
  Status Synchronize() override { return runtime_->Synchronize(); }
  Status Read(void* to, const void* from, size_t bytes) override {
    return runtime_->Read(to, from, bytes);
  }
  Status Write(void* to, const void* from, size_t bytes) override {
    return runtime_->Write(to, from, bytes);
  }
  Status BeginCapture(device::Stream& stream) override { return runtime_->BeginCapture(stream); }
  StatusOr<std::unique_ptr<device::Sequence>> EndCapture(device::Stream& stream) override {
    return runtime_->EndCapture(stream);
  }
  void Replay(const device::Sequence& sequence, device::Stream& stream) override {
    runtime_->Replay(sequence, stream);
  }

 private:
  bool Now(Mistake mistake) { return mistake == mistake_ && left_-- == 0; }

  const std::shared_ptr<DeviceRuntime> runtime_;
  Mistake mistake_;
  int left_;
  std::vector<const void*> feeds_;  // the pinned memory of the slots
};

enum class Outcome { kFound, kMissed, kNotMade };

constexpr int kWrong = 10, kRight = 11, kTooFewCalls = 12;

// Trains with the mistake in another process, because the fake device aborts the process that
// breaks its rules.
Outcome Try(Mistake mistake, int n, uint64_t seed, const std::vector<float>& expected) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(kRight);
    Device device = EmulatedCudaDevice(seed);
    const auto runtime = std::make_shared<MistakenRuntime>(device.runtime, mistake, n);
    device.runtime = runtime;
    const auto actual = Train(device, [&runtime] { runtime->Stop(); });
    const bool right = actual.ok() && *actual == expected;
    _exit(!runtime->made() && mistake != Mistake::kNone ? kTooFewCalls : right ? kRight : kWrong);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status)) return Outcome::kFound;
  if (WEXITSTATUS(status) == kTooFewCalls) return Outcome::kNotMade;
  return WEXITSTATUS(status) == kRight ? Outcome::kMissed : Outcome::kFound;
}

TEST(CudaHost, WithoutAMistakeNothingIsFound) {
  const auto expected = Train(EmulatedCudaDevice(0));
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_EQ(Try(Mistake::kNone, 0, seed, *expected), Outcome::kMissed);
}

TEST(CudaHost, EveryPlantedMistakeIsFound) {
  const auto expected = Train(EmulatedCudaDevice(0));
  ASSERT_TRUE(expected.ok()) << expected.status();
  constexpr uint64_t kSeeds = 3;
  for (const auto& [mistake, description] : kMistakes) {
    int made = 0, found_in_all = 0;
    for (;; ++made) {
      uint64_t found = 0, seed = 1;
      for (; seed <= kSeeds; ++seed) {
        const Outcome outcome = Try(mistake, made, seed, *expected);
        if (outcome == Outcome::kNotMade) break;
        if (outcome == Outcome::kFound) ++found;
      }
      if (seed <= kSeeds) break;  // the run has no further call
      EXPECT_GT(found, 0U) << description << ", call " << made;
      if (found == kSeeds) ++found_in_all;
    }
    EXPECT_GE(made, static_cast<int>(kSteps)) << description;
    std::printf("%s: %d planted, %d found with each of %d seeds\n", description, made, found_in_all,
                static_cast<int>(kSeeds));
  }
}

}  // namespace
}  // namespace tfjob::exec
