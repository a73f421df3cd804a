// Tests when the ranks of a generation use NCCL, on a fake library and a fake driver. The ranks are
// threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/thread.h"
#include "runtime/collectives/contract.h"
#include "runtime/collectives/nccl/fake_nccl.h"
#include "runtime/collectives/socket/test_sockets.h"
#include "runtime/collectives/test_ranks.h"
#include "runtime/collectives/transport/task_communicator.h"
#include "runtime/device/cpu_runtime.h"
#include "runtime/device/cuda/cuda_runtime.h"
#include "runtime/device/cuda/fake_driver.h"

namespace tfjob::collectives {
namespace {

using testing::HasSubstr;
using Made = StatusOr<std::unique_ptr<Communicator>>;
using Devices = std::vector<std::shared_ptr<device::DeviceRuntime>>;

constexpr int kCpu = -1;

// Returns the device of each rank: the GPU of this number, or the CPU.
Devices DevicesOf(const std::vector<int>& gpus) {
  device::cuda::FakeMachine machine;
  machine.gpus.resize(4);
  const auto& driver = device::cuda::FakeDriver(machine);
  Devices devices;
  for (const int gpu : gpus) {
    if (gpu == kCpu) {
      devices.push_back(device::CpuRuntime());
    } else {
      devices.push_back(*device::cuda::CudaRuntime::Create(driver, {.gpu = gpu}, {}));
    }
  }
  return devices;
}

std::vector<Made> MakeAll(const Devices& devices, NcclChoice choice,
                          nccl::FakeNcclOptions options = {}) {
  const nccl::NcclApi& library = nccl::FakeNccl(std::move(options));
  Sockets sockets = Connect(devices.size());
  std::vector<Made> made(devices.size());
  std::vector<Thread> threads;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    threads.emplace_back("rank", [&, rank] {
      made[rank] = MakeTaskCommunicator({.rank = static_cast<int>(rank),
                                         .sockets = std::move(sockets[rank]),
                                         .nccl = choice,
                                         .device = devices[rank],
                                         .nccl_patience = 1s,
                                         .nccl_library = &library});
    });
  }
  for (Thread& thread : threads) thread.Join();
  return made;
}

// Lets all ranks add, and leave together.
void ExpectToWorkOver(std::string_view transport, std::vector<Made> made) {
  std::vector<Thread> threads;
  for (Made& one : made) {
    ASSERT_TRUE(one.ok()) << one.status();
    threads.emplace_back("rank", [&] {
      EXPECT_EQ((*one)->transport(), transport);
      EXPECT_EQ((*one)->device() != nullptr, transport == "nccl");
      std::vector<float> values(20'000, 1.F);
      EXPECT_EQ((*one)->AllReduce(Bytes(values), DType::kFloat32, Reduction::kSum), OkStatus());
      EXPECT_EQ(values, std::vector<float>(20'000, static_cast<float>((*one)->size())));
      one->reset();
    });
  }
  for (Thread& thread : threads) thread.Join();
  EXPECT_EQ(nccl::FakeNcclState().communicators, 0);
}

void ExpectErrors(const std::vector<Made>& made, const std::string& part) {
  for (const Made& one : made) {
    EXPECT_EQ(one.status().code(), StatusCode::kFailedPrecondition) << one.status();
    EXPECT_THAT(std::string(Message(one.status())), HasSubstr(part));
  }
}

TEST(GpuRanks, UseNcclIfEachHasAGpuOfItsOwn) {
  for (const NcclChoice choice : {NcclChoice::kIfAllCan, NcclChoice::kAlways}) {
    ExpectToWorkOver("nccl", MakeAll(DevicesOf({0, 1, 2}), choice));
    EXPECT_GT(nccl::FakeNcclState().operations, 0);
  }
  ExpectToWorkOver("nccl", MakeAll(DevicesOf({0}), NcclChoice::kAlways));
  ExpectToWorkOver("shared memory", MakeAll(DevicesOf({0, 1}), NcclChoice::kNever));
}

TEST(GpuRanks, ARankOnACpuIsNamedOrAllRanksUseTheirOwnTransport) {
  ExpectErrors(MakeAll(DevicesOf({0, kCpu, 2}), NcclChoice::kAlways),
               "the tasks cannot exchange with NCCL: rank 1: it does not compute on an NVIDIA GPU, "
               "which NCCL needs; set device: cuda in all tasks");
  ExpectToWorkOver("shared memory", MakeAll(DevicesOf({0, kCpu, 2}), NcclChoice::kIfAllCan));
  ExpectToWorkOver("shared memory", MakeAll(DevicesOf({kCpu, kCpu}), NcclChoice::kIfAllCan));
  EXPECT_EQ(nccl::FakeNcclState().operations, 0);
}

TEST(GpuRanks, TwoRanksOnOneGpuAreNamedOrAllRanksUseTheirOwnTransport) {
  ExpectErrors(
      MakeAll(DevicesOf({0, 1, 1}), NcclChoice::kAlways),
      "rank 1 and rank 2 use the same GPU, which NCCL does not allow; give each task a GPU "
      "of its own");
  ExpectToWorkOver("shared memory", MakeAll(DevicesOf({0, 1, 1}), NcclChoice::kIfAllCan));
}

TEST(GpuRanks, DifferentVersionsAreNamedOrAllRanksUseTheirOwnTransport) {
  const auto version = [](int thread) { return thread == 2 ? 22105 : 22809; };
  const std::vector<Made> made =
      MakeAll(DevicesOf({0, 1, 2}), NcclChoice::kAlways, {.version = version});
  ExpectErrors(made, "install the same version in all tasks");
  for (const Made& one : made) EXPECT_EQ(one.status(), made[0].status());
  ExpectToWorkOver("shared memory",
                   MakeAll(DevicesOf({0, 1, 2}), NcclChoice::kIfAllCan, {.version = version}));
}

TEST(GpuRanks, WhatATaskLacksIsKnownBeforeItMeetsOthers) {
  EXPECT_THAT(std::string(Message(CanUseNccl(device::CpuRuntime()))),
              HasSubstr("it does not compute on an NVIDIA GPU"));
  const Status no_library = CanUseNccl(DevicesOf({0})[0]);
  if (!no_library.ok()) {
    EXPECT_THAT(std::string(Message(no_library)), HasSubstr("NCCL"));
  }
}

// A rank's values in several places on its GPU, with a gap between two of them.
struct OnGpu {
  explicit OnGpu(device::DeviceRuntime& gpu, int rank) : gpu(gpu) {
    for (device::Memory* memory : {&first, &second, &sum}) {
      *memory = *gpu.Allocate(device::MemoryKind::kDevice, 64, Buffer::Contents::kZero, "values");
    }
    const std::vector<float> values(16, static_cast<float>(rank + 1));
    EXPECT_EQ(gpu.Write(first.get(), values.data(), 8), OkStatus());
    EXPECT_EQ(gpu.Write(second.get(), values.data(), 4), OkStatus());
  }
  DeviceSum Sum(std::vector<DeviceSum::Part>& parts, std::span<std::byte> host_copy = {}) const {
    parts = {{.from = first.get(), .begin = 0, .bytes = 8},
             {.from = second.get(), .begin = 32, .bytes = 4}};
    return {
        .values = {static_cast<std::byte*>(sum.get()), 64}, .parts = parts, .host_copy = host_copy};
  }
  std::vector<float> Read() const {
    std::vector<float> values(16);
    EXPECT_EQ(gpu.Read(values.data(), sum.get(), 64), OkStatus());
    return values;
  }

  device::DeviceRuntime& gpu;
  device::Memory first, second, sum;
};

// The sum of 1, 2 and 3 where ranks have values.
std::vector<float> ExpectedSum() {
  std::vector<float> expected(16);
  expected[0] = expected[1] = expected[8] = 6;
  return expected;
}

// Calls the function for each rank on a thread of its own, which then destroys the communicator.
void OnRanks(std::vector<Made> made, const std::function<void(Communicator&)>& body) {
  std::vector<Thread> threads;
  for (Made& one : made) {
    ASSERT_TRUE(one.ok()) << one.status();
    threads.emplace_back("rank", [&] {
      body(**one);
      one->reset();
    });
  }
  for (Thread& thread : threads) thread.Join();
}

TEST(GpuRanks, AddValuesThatStayOnTheGpus) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    OnRanks(MakeAll(DevicesOf({0, 1, 2}), NcclChoice::kAlways, {.seed = seed}),
            [](Communicator& communicator) {
              const OnGpu values(*communicator.device(), communicator.rank());
              const OnGpu others(*communicator.device(), communicator.rank());
              std::vector<DeviceSum::Part> parts, more;
              const auto copy = *communicator.Allocate(64);
              ASSERT_EQ(communicator.AllReduceOnDevice(values.Sum(parts, copy->bytes())),
                        OkStatus());
              ASSERT_EQ(communicator.AllReduceOnDevice(others.Sum(more)), OkStatus());
              ASSERT_EQ(communicator.AwaitDevice(), OkStatus());
              const auto* const copied = reinterpret_cast<const float*>(copy->bytes().data());
              EXPECT_EQ(std::vector<float>(copied, copied + 16), ExpectedSum());
              EXPECT_EQ(values.Read(), ExpectedSum());
              EXPECT_EQ(others.Read(), ExpectedSum());
              EXPECT_EQ(communicator.Barrier(), OkStatus());
            });
    EXPECT_EQ(nccl::FakeNcclState().operations, 6);
  }
}

TEST(GpuRanks, ASumThatHangsIsAbortedOnAllRanks) {
  const auto fault = [](int rank, int64_t operation) {
    return rank == 1 && operation == 2 ? nccl::NcclFault::kHang : nccl::NcclFault::kNone;
  };
  OnRanks(MakeAll(DevicesOf({0, 1, 2}), NcclChoice::kAlways, {.fault = fault}),
          [](Communicator& communicator) {
            const OnGpu values(*communicator.device(), communicator.rank());
            std::vector<DeviceSum::Part> parts;
            ASSERT_EQ(communicator.AllReduceOnDevice(values.Sum(parts)), OkStatus());
            ASSERT_EQ(communicator.AwaitDevice(), OkStatus());
            Status failed = communicator.AllReduceOnDevice(values.Sum(parts));
            if (failed.ok()) failed = communicator.AwaitDevice();
            // The GPUs of the other ranks may have completed the sum.
            EXPECT_TRUE(communicator.rank() != 1 || !failed.ok());
            if (failed.ok()) failed = communicator.Barrier();
            EXPECT_EQ(failed.code(), StatusCode::kDeadlineExceeded) << failed;
            EXPECT_THAT(
                std::string(Message(failed)),
                HasSubstr("NCCL has not completed AllReduce(64 bytes of float32, sum) within"));
            EXPECT_EQ(communicator.AwaitDevice(), failed) << "the error lasts";
          });
  EXPECT_EQ(nccl::FakeNcclState().aborts, 3);
  EXPECT_EQ(nccl::FakeNcclState().communicators, 0);
}

// A rank that leaves without waiting for its sums, because its step has failed for another reason.
TEST(GpuRanks, AnAbandonedSumReleasesItsMemory) {
  OnRanks(MakeAll(DevicesOf({0, 1}), NcclChoice::kAlways), [](Communicator& communicator) {
    const OnGpu values(*communicator.device(), communicator.rank());
    std::vector<DeviceSum::Part> parts;
    // The other rank may abort before this one has submitted the sum.
    Status ended = communicator.AllReduceOnDevice(values.Sum(parts));
    EXPECT_TRUE(communicator.rank() == 0 || ended.ok()) << ended;
    if (communicator.rank() == 1) communicator.Abort(Internal("a gradient cannot be computed"));
    if (ended.ok()) {
      ended = communicator.rank() == 1 ? communicator.AwaitDevice() : communicator.Barrier();
    }
    EXPECT_EQ(ended.code(), StatusCode::kInternal) << ended;
  });
}

}  // namespace
}  // namespace tfjob::collectives
