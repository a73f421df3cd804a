// Runs the runtime on the fake driver, which ends the process if the rules of a device are broken.
#include "runtime/device/cuda/cuda_runtime.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>

#include "runtime/device/cuda/fake_driver.h"

namespace tfjob::device::cuda {
namespace {

constexpr size_t kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr uint64_t kSeeds = 20;
constexpr std::byte kImage[4] = {};
const std::span<const std::byte> kImages[] = {kImage};

struct AddParameter {
  int* numbers;
  int64_t count;
  int64_t added;
};

FakeMachine MachineWithAdd(uint64_t seed = 1) {
  FakeMachine machine{.seed = seed};
  machine.kernels["Add"] = {sizeof(AddParameter), [](const FakeLaunch& launch) {
                              AddParameter p;
                              std::memcpy(&p, launch.parameter.data(), sizeof p);
                              for (int64_t i = 0; i < p.count; ++i)
                                p.numbers[i] += static_cast<int>(p.added);
                            }};
  return machine;
}

std::shared_ptr<CudaRuntime> Create(FakeMachine machine, const CudaOptions& options = {}) {
  auto runtime = CudaRuntime::Create(FakeDriver(std::move(machine)), options, kImages);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return *runtime;
}

std::string ErrorOf(FakeMachine machine, const CudaOptions& options = {}) {
  return std::string(
      Message(CudaRuntime::Create(FakeDriver(std::move(machine)), options, kImages).status()));
}

int* Ints(const Memory& memory) {
  return static_cast<int*>(memory.get());
}

void Add(CudaRuntime& runtime, const Memory& memory, int added, Stream& stream) {
  const AddParameter parameter{Ints(memory), kCount, added};
  runtime.Submit({.kernel = *runtime.FindKernel("Add"),
                  .name = "Add",
                  .grid = {4},
                  .block = {256},
                  .parameter = &parameter,
                  .bytes = sizeof parameter},
                 stream);
}

TEST(CudaRuntime, DescribesTheGpu) {
  const auto runtime =
      Create({.gpus = {FakeGpu(), {.name = "H", .multiprocessors = 7}}}, {.gpu = 1});
  EXPECT_EQ(runtime->description(), "H (GPU 1, compute capability 9.0)");
  EXPECT_EQ(runtime->multiprocessors(), 7);
  EXPECT_FALSE(runtime->immediate());
}

TEST(CudaRuntime, RejectsWhatCannotWork) {
  EXPECT_EQ(ErrorOf({}, {.memory_fraction = 1.5}),
            "the fraction of the GPU's memory is 1.5: expected a number above 0 and at most 1");
  EXPECT_EQ(ErrorOf({}, {.memory_fraction = 0}),
            "the fraction of the GPU's memory is 0: expected a number above 0 and at most 1");
  EXPECT_EQ(ErrorOf({}, {.gpu = 1}),
            "GPU 1 does not exist: the driver shows 1 GPUs, which are numbered from 0");
  EXPECT_EQ(ErrorOf({.gpus = {{.name = "V100", .compute_major = 7}}}),
            "V100 (GPU 0, compute capability 7.0) is too old: this program needs compute "
            "capability 8.0 or newer");
  EXPECT_EQ(ErrorOf({.failures = {{"cuLibraryLoadData", 200}}}),
            "Fake GPU (GPU 0, compute capability 9.0): cuLibraryLoadData: CUDA_ERROR_INVALID_IMAGE "
            "(no description)");
}

// The device adds to one slot while the next batch is copied into the other.
TEST(CudaRuntime, RunsCopiesAndKernelsInTheOrderOfStreamsAndEvents) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto runtime = Create(MachineWithAdd(seed));
    const auto feeds = *runtime->NewStream(), compute = *runtime->NewStream();
    constexpr int kSteps = 6;
    Memory pinned[2], device[2], fetched[kSteps];
    std::unique_ptr<Event> fed[2], used[2], done[kSteps];
    for (int slot = 0; slot < 2; ++slot) {
      pinned[slot] = *runtime->Allocate(MemoryKind::kPinned, kBytes, Buffer::Contents::kZero, "p");
      device[slot] = *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "d");
      fed[slot] = *runtime->NewEvent();
      used[slot] = *runtime->NewEvent();
    }
    for (int step = 0; step < kSteps; ++step) {
      const int slot = step % 2;
      fetched[step] = *runtime->Allocate(MemoryKind::kPinned, kBytes, Buffer::Contents::kZero, "f");
      done[step] = *runtime->NewEvent();
      ASSERT_EQ(runtime->Synchronize(*fed[slot]), OkStatus());
      for (size_t i = 0; i < kCount; ++i) Ints(pinned[slot])[i] = 10 * step;
      runtime->Wait(*feeds, *used[slot]);
      runtime->Copy(device[slot].get(), pinned[slot].get(), kBytes, *feeds);
      runtime->Record(*fed[slot], *feeds);
      runtime->Wait(*compute, *fed[slot]);
      Add(*runtime, device[slot], 1, *compute);
      runtime->Copy(fetched[step].get(), device[slot].get(), kBytes, *compute);
      runtime->Record(*used[slot], *compute);
      runtime->Record(*done[step], *compute);
    }
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_EQ(runtime->Synchronize(*done[step]), OkStatus());
      EXPECT_EQ(Ints(fetched[step])[kCount - 1], 10 * step + 1) << "seed " << seed;
    }
    ASSERT_EQ(runtime->Synchronize(), OkStatus());
  }
}

TEST(CudaRuntime, ReplaysACapturedSequence) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto runtime = Create(MachineWithAdd(seed));
    const auto stream = *runtime->NewStream();
    const Memory memory =
        *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
    ASSERT_EQ(runtime->BeginCapture(*stream), OkStatus());
    Add(*runtime, memory, 2, *stream);
    Add(*runtime, memory, 3, *stream);
    const auto sequence = *runtime->EndCapture(*stream);
    for (int i = 0; i < 4; ++i) runtime->Replay(*sequence, *stream);
    int value = 0;
    ASSERT_EQ(runtime->Read(&value, memory.get(), sizeof value), OkStatus());
    EXPECT_EQ(value, 20);
  }
}

TEST(CudaRuntime, ReadsAndWritesAllMemory) {
  const auto runtime = Create({});
  const Memory memory =
      *runtime->Allocate(MemoryKind::kDevice, 8, Buffer::Contents::kUndefined, "m");
  const int written[2] = {3, 4};
  int read[2] = {};
  EXPECT_EQ(runtime->Write(memory.get(), written, sizeof written), OkStatus());
  EXPECT_EQ(runtime->Read(read, memory.get(), sizeof read), OkStatus());
  EXPECT_EQ(read[1], 4);
  EXPECT_EQ(runtime->Read(nullptr, nullptr, 0), OkStatus());
}

TEST(CudaRuntime, EmptyTensorsHaveAnAddress) {
  const auto runtime = Create({});
  for (const MemoryKind kind : {MemoryKind::kHost, MemoryKind::kPinned, MemoryKind::kDevice})
    EXPECT_TRUE(runtime->Allocate(kind, 0, Buffer::Contents::kZero, "empty").ok()) << Name(kind);
}

TEST(CudaRuntime, AGridWithoutBlocksIsNotLaunched) {
  const auto runtime = Create(MachineWithAdd());
  const auto stream = *runtime->NewStream();
  runtime->Submit({.kernel = *runtime->FindKernel("Add"), .grid = {0}, .block = {256}}, *stream);
  EXPECT_EQ(runtime->Synchronize(), OkStatus());
  EXPECT_EQ(FakeDriverCalls()["cuLaunchKernel"], 0);
}

TEST(CudaRuntime, FindsKernelsByNameAndAsksTheDriverOnce) {
  const auto runtime = Create(MachineWithAdd());
  EXPECT_TRUE(runtime->FindKernel("Add").ok());
  EXPECT_EQ(runtime->FindKernel("Add").value(), runtime->FindKernel("Add").value());
  EXPECT_EQ(FakeDriverCalls()["cuLibraryGetKernel"], 1);
  EXPECT_EQ(runtime->FindKernel("Sub").status(),
            NotFound("this program contains no CUDA kernel Sub"));
}

TEST(CudaRuntime, MemoryBeyondTheFractionIsRefused) {
  const auto runtime = Create({.gpus = {{.memory_bytes = 1000}}}, {.memory_fraction = 0.5});
  Memory memory = *runtime->Allocate(MemoryKind::kDevice, 300, Buffer::Contents::kZero, "w");
  const auto refused = runtime->Allocate(MemoryKind::kDevice, 201, Buffer::Contents::kZero, "v");
  EXPECT_EQ(refused.status(),
            ResourceExhausted("v needs 201 bytes, but of the 500 bytes that this process may use "
                              "on Fake GPU (GPU 0, compute capability 9.0), 300 are in use"));
  memory.reset();
  EXPECT_TRUE(runtime->Allocate(MemoryKind::kDevice, 500, Buffer::Contents::kZero, "v").ok());
}

// Simulates that another process uses all other memory.
TEST(CudaRuntime, MemoryThatTheGpuLacksIsRefusedWithItsName) {
  const auto runtime = Create({.failures = {{"cuMemAlloc_v2", kOutOfMemory}}});
  const Status status =
      runtime->Allocate(MemoryKind::kDevice, 16, Buffer::Contents::kZero, "embedding").status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "embedding needs 16 bytes, but Fake GPU (GPU 0, compute capability 9.0) has "
            "17179869184 of 17179869184 bytes free: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of "
            "memory)");
  EXPECT_TRUE(
      runtime->Allocate(MemoryKind::kDevice, 16, Buffer::Contents::kZero, "x").status().code() ==
      StatusCode::kResourceExhausted);
}

TEST(CudaRuntime, KeepsTheFirstErrorOfASubmission) {
  FakeMachine machine = MachineWithAdd();
  machine.failures["cuLaunchKernel"] = 700;
  machine.failures["cuEventRecord"] = 701;
  const auto runtime = Create(machine);
  const auto stream = *runtime->NewStream();
  const auto event = *runtime->NewEvent();
  const Memory memory =
      *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
  Add(*runtime, memory, 2, *stream);
  runtime->Record(*event, *stream);
  const Status expected =
      Internal("Fake GPU (GPU 0, compute capability 9.0): Add: unknown error ", "(no description)");
  EXPECT_EQ(runtime->Synchronize(*event), expected);
  EXPECT_EQ(runtime->Synchronize(), expected);
  int value = 0;
  EXPECT_EQ(runtime->Read(&value, memory.get(), sizeof value), expected);
}

// The driver's functions use the context of the calling thread.
TEST(CudaRuntime, MayBeUsedOnAnyThread) {
  const auto runtime = Create(MachineWithAdd());
  Status status;
  std::thread([&] {
    const auto stream = *runtime->NewStream();
    const Memory memory =
        *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
    Add(*runtime, memory, 1, *stream);
    status = runtime->Synchronize();
  }).join();
  EXPECT_EQ(status, OkStatus());
}

// Checks that everything that was created is returned to the driver.
TEST(CudaRuntime, ReturnsWhatItTook) {
  {
    const auto runtime = Create(MachineWithAdd());
    const auto stream = *runtime->NewStream();
    const auto event = *runtime->NewEvent();
    const Memory device = *runtime->Allocate(MemoryKind::kDevice, 4, Buffer::Contents::kZero, "d");
    const Memory pinned = *runtime->Allocate(MemoryKind::kPinned, 4, Buffer::Contents::kZero, "p");
    ASSERT_EQ(runtime->BeginCapture(*stream), OkStatus());
    const auto sequence = *runtime->EndCapture(*stream);
  }
  auto calls = FakeDriverCalls();
  for (const auto& [taken, returned] :
       {std::pair("cuStreamCreate", "cuStreamDestroy_v2"),
        std::pair("cuEventCreate", "cuEventDestroy_v2"), std::pair("cuMemAlloc_v2", "cuMemFree_v2"),
        std::pair("cuMemHostAlloc", "cuMemFreeHost"),
        std::pair("cuStreamEndCapture", "cuGraphDestroy"),
        std::pair("cuGraphInstantiateWithFlags", "cuGraphExecDestroy"),
        std::pair("cuLibraryLoadData", "cuLibraryUnload"),
        std::pair("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2")}) {
    EXPECT_EQ(calls[taken], 1) << taken;
    EXPECT_EQ(calls[returned], 1) << returned;
  }
}

}  // namespace
}  // namespace tfjob::device::cuda
