// Tests the runtime with the fake driver, which aborts the process if the rules of a device are
// broken.
#include "runtime/device/cuda/cuda_runtime.h"

#include <gmock/gmock.h>
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

// Creates a runtime and loads its kernels, because a capture must not load any.
std::shared_ptr<CudaRuntime> Create(FakeMachine machine, const CudaOptions& options = {}) {
  const bool has_add = machine.kernels.contains("Add");
  auto runtime = CudaRuntime::Create(FakeDriver(std::move(machine)), options, kImages);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  if (has_add) {
    EXPECT_TRUE((*runtime)->FindKernel("Add").ok());
  }
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

TEST(CudaRuntime, AnEventSaysWhetherItsOperationsHaveRunWithoutWaiting) {
  const auto runtime = Create({});
  const auto stream = *runtime->NewStream();
  const auto event = *runtime->NewEvent();
  bool ready = false;
  EXPECT_EQ(SubmitToFakeDriver({.name = "late",
                                .accesses = {},
                                .run = [](std::span<void* const>) {},
                                .ready = [&ready] { return ready; }},
                               HandleOf(*stream)),
            kSuccess);
  runtime->Record(*event, *stream);
  EXPECT_FALSE(*runtime->HasRun(*event));
  ready = true;
  while (!*runtime->HasRun(*event)) {
  }
}

TEST(CudaRuntime, AnEventReportsTheFailureOfAnOperation) {
  const auto runtime = Create({.failures = {{"cuEventQuery", 700}}});
  const auto stream = *runtime->NewStream();
  const auto event = *runtime->NewEvent();
  runtime->Record(*event, *stream);
  const Status failed = runtime->HasRun(*event).status();
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_NE(Message(failed).find("an operation submitted before cuEventQuery failed"),
            std::string::npos)
      << failed;
}

TEST(CudaRuntime, DescribesTheGpu) {
  const auto runtime = Create({.gpus = {FakeGpu(), {.name = "H"}}}, {.gpu = 1});
  EXPECT_EQ(runtime->description(), "H (GPU 1, compute capability 9.0)");
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

// The device adds to one slot while the next batch is copied into the other slot.
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

TEST(CudaRuntime, ACaptureWithARefusedKernelFailsAndLeavesNoGraph) {
  FakeMachine machine = MachineWithAdd();
  machine.failures["cuLaunchKernel"] = 1;
  const auto runtime = Create(machine);
  const auto stream = *runtime->NewStream();
  const Memory memory =
      *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
  ASSERT_EQ(runtime->BeginCapture(*stream), OkStatus());
  Add(*runtime, memory, 2, *stream);
  EXPECT_EQ(Message(runtime->EndCapture(*stream).status()),
            "Fake GPU (GPU 0, compute capability 9.0): Add: CUDA_ERROR_INVALID_VALUE (no "
            "description)");
  auto calls = FakeDriverCalls();
  EXPECT_EQ(calls["cuGraphDestroy"], calls["cuStreamEndCapture"]);
  EXPECT_EQ(calls["cuGraphExecDestroy"], calls["cuGraphInstantiateWithFlags"]);
}

// The driver refuses to free memory during a capture. After the refusal, it reports only that the
// capture is invalid.
TEST(CudaRuntime, AnInvalidCaptureNamesTheFirstError) {
  const auto runtime = Create(MachineWithAdd());
  const auto stream = *runtime->NewStream();
  Memory freed = *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "freed");
  const Memory memory =
      *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
  ASSERT_EQ(runtime->BeginCapture(*stream), OkStatus());
  freed.reset();
  Add(*runtime, memory, 2, *stream);
  EXPECT_EQ(Message(runtime->EndCapture(*stream).status()),
            "Fake GPU (GPU 0, compute capability 9.0): cuMemFree: "
            "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (no description)");
}

TEST(CudaRuntime, AllocatingInvalidatesACapture) {
  const auto runtime = Create(MachineWithAdd());
  const auto stream = *runtime->NewStream();
  ASSERT_EQ(runtime->BeginCapture(*stream), OkStatus());
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kPinned})
    EXPECT_FALSE(runtime->Allocate(kind, 4, Buffer::Contents::kUndefined, "m").ok()) << Name(kind);
  EXPECT_THAT(Message(runtime->EndCapture(*stream).status()),
              testing::HasSubstr("cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
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

// The driver sets memory, and copies to it, on the NULL stream, which is not one of the runtime's
// streams.
TEST(CudaRuntime, KernelsSeeWhatTheHostHasWritten) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto runtime = Create(MachineWithAdd(seed));
    const auto stream = *runtime->NewStream();
    const auto zero =
        *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "zero");
    const auto written =
        *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kUndefined, "written");
    const std::vector<int> fives(kCount, 5);
    ASSERT_EQ(runtime->Write(written.get(), fives.data(), kBytes), OkStatus());
    Add(*runtime, zero, 1, *stream);
    Add(*runtime, written, 1, *stream);
    std::vector<int> read(kCount);
    ASSERT_EQ(runtime->Read(read.data(), zero.get(), kBytes), OkStatus());
    EXPECT_EQ(read, std::vector<int>(kCount, 1)) << "seed " << seed;
    ASSERT_EQ(runtime->Read(read.data(), written.get(), kBytes), OkStatus());
    EXPECT_EQ(read, std::vector<int>(kCount, 6)) << "seed " << seed;
  }
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

TEST(CudaRuntime, AParameterOfAnotherSizeThanInTheImageIsNotRead) {
  const auto runtime = Create(MachineWithAdd());
  const auto stream = *runtime->NewStream();
  const int64_t small = 0;
  runtime->Submit({.kernel = *runtime->FindKernel("Add"),
                   .name = "Add",
                   .grid = {1},
                   .block = {256},
                   .parameter = &small,
                   .bytes = sizeof small},
                  *stream);
  EXPECT_EQ(
      runtime->Synchronize(),
      Internal("Fake GPU (GPU 0, compute capability 9.0): Add got a parameter of 8 bytes, but "
               "its image has one of 24"));
  EXPECT_EQ(FakeDriverCalls()["cuLaunchKernel"], 0);
}

TEST(CudaRuntime, LeavesNoContextOnTheThread) {
  const DriverApi& driver = FakeDriver({});
  ASSERT_TRUE(CudaRuntime::Create(driver, {}, kImages).ok());
  size_t free = 0, total = 0;
  EXPECT_EQ(ToStatus(driver, driver.MemGetInfo(&free, &total), "cuMemGetInfo"),
            Internal("cuMemGetInfo: CUDA_ERROR_INVALID_CONTEXT (no description)"));
}

TEST(CudaRuntime, FindsKernelsByNameAndAsksTheDriverOnce) {
  const auto runtime = Create(MachineWithAdd());
  EXPECT_TRUE(runtime->FindKernel("Add").ok());
  EXPECT_EQ(runtime->FindKernel("Add")->handle, runtime->FindKernel("Add")->handle);
  EXPECT_EQ(runtime->FindKernel("Add")->parameter_bytes, sizeof(AddParameter));
  EXPECT_EQ(FakeDriverCalls()["cuLibraryGetKernel"], 1);
  EXPECT_EQ(runtime->FindKernel("Sub").status(),
            NotFound("this program contains no CUDA kernel Sub"));
}

TEST(CudaRuntime, LoadingAKernelInvalidatesACapture) {
  const auto runtime = *CudaRuntime::Create(FakeDriver(MachineWithAdd()), {}, kImages);
  const auto stream = *runtime->NewStream();
  ASSERT_EQ(runtime->BeginCapture(*stream), OkStatus());
  EXPECT_EQ(runtime->FindKernel("Add").status(),
            Internal("Fake GPU (GPU 0, compute capability 9.0): cuKernelGetFunction of Add: "
                     "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (no description)"));
  EXPECT_FALSE(runtime->EndCapture(*stream).ok());
  EXPECT_TRUE(runtime->FindKernel("Add").ok());
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
  const auto runtime =
      Create({.gpus = {{.memory_bytes = 16}}, .failures = {{"cuMemAlloc_v2", kOutOfMemory}}});
  // A refused allocation must not count as used memory.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        runtime->Allocate(MemoryKind::kDevice, 16, Buffer::Contents::kZero, "embedding").status(),
        ResourceExhausted("embedding needs 16 bytes, but the GPU has 16 of 16 bytes free: Fake GPU "
                          "(GPU 0, compute capability 9.0): cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY "
                          "(out of memory)"));
  }
}

// Two tasks that share a GPU must set gpu.memory_fraction. If they do not, the second one lacks
// memory that it is allowed to use.
TEST(CudaRuntime, MemoryThatAnotherProcessUsesIsExplained) {
  const auto runtime = Create({.gpus = {{.memory_bytes = 1000, .used_by_others = 600}}});
  const Memory memory = *runtime->Allocate(MemoryKind::kDevice, 300, Buffer::Contents::kZero, "w");
  EXPECT_EQ(
      runtime->Allocate(MemoryKind::kDevice, 200, Buffer::Contents::kZero, "the program").status(),
      ResourceExhausted(
          "the program needs 200 bytes, but the GPU has 100 of 1000 bytes free, because other "
          "processes use up to 600 bytes: end them or, if several tasks share this GPU, set "
          "gpu.memory_fraction in their training files, so that the fractions add up to less than "
          "1: Fake GPU (GPU 0, compute capability 9.0): cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out "
          "of memory)"));
}

TEST(CudaRuntime, KeepsTheFirstErrorOfASubmission) {
  FakeMachine machine = MachineWithAdd();
  machine.failures["cuLaunchKernel"] = 1;
  machine.failures["cuEventRecord"] = 2;
  const auto runtime = Create(machine);
  const auto stream = *runtime->NewStream();
  const auto event = *runtime->NewEvent();
  const Memory memory =
      *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
  Add(*runtime, memory, 2, *stream);
  runtime->Record(*event, *stream);
  const Status expected =
      Internal("Fake GPU (GPU 0, compute capability 9.0): Add: CUDA_ERROR_INVALID_VALUE (no ",
               "description)");
  EXPECT_EQ(runtime->Synchronize(*event), expected);
  EXPECT_EQ(runtime->Synchronize(), expected);
  int value = 0;
  EXPECT_EQ(runtime->Read(&value, memory.get(), sizeof value), expected);
}

// A kernel that accesses invalid memory fails when it runs. The driver reports the fault in a later
// call; the message must not blame that call.
TEST(CudaRuntime, AFaultIsNotBlamedOnTheCallThatReportsIt) {
  for (const auto& [symbol, call] :
       {std::pair("cuLaunchKernel", "Add"), std::pair("cuCtxSynchronize", "cuCtxSynchronize"),
        std::pair("cuMemAlloc_v2", "cuMemAlloc")}) {
    FakeMachine machine = MachineWithAdd();
    machine.failures[symbol] = 700;
    const auto runtime = Create(machine);
    const auto memory =
        runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
    const auto stream = *runtime->NewStream();
    if (memory.ok()) Add(*runtime, *memory, 2, *stream);
    const Status status = memory.ok() ? runtime->Synchronize() : memory.status();
    EXPECT_THAT(Message(status),
                testing::EndsWith(StrCat("Fake GPU (GPU 0, compute capability 9.0): an operation "
                                         "submitted before ",
                                         call,
                                         " failed: CUDA_ERROR_ILLEGAL_ADDRESS (no "
                                         "description)")));
    EXPECT_THAT(Message(status), testing::Not(testing::HasSubstr("bytes free")));
  }
}

// The driver's functions use the context of the calling thread, so the runtime must set it on each
// thread.
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

// The driver refuses to destroy a stream or an event on a thread without a context.
TEST(CudaRuntime, ItsObjectsMayBeDroppedOnAnyThread) {
  const auto runtime = Create(MachineWithAdd());
  auto stream = *runtime->NewStream();
  auto event = *runtime->NewEvent();
  const Memory memory =
      *runtime->Allocate(MemoryKind::kDevice, kBytes, Buffer::Contents::kZero, "sum");
  Add(*runtime, memory, 1, *stream);
  // The stream and the event are dropped on separate threads, because the first call may give its
  // thread a context.
  std::thread([&] { stream.reset(); }).join();
  std::thread([&] { event.reset(); }).join();
  EXPECT_EQ(runtime->Synchronize(), OkStatus());
  EXPECT_EQ(FakeDriverCalls()["cuStreamDestroy_v2"], 1);
  EXPECT_EQ(FakeDriverCalls()["cuEventDestroy_v2"], 1);
}

// Checks that everything obtained from the driver is released.
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
