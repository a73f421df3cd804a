// Implements the functions of NVIDIA's driver in this process, so that code that calls the driver
// can be tested without a GPU. The functions use the fake device of fake_runtime.h: operations run
// late, in an order that is drawn from a seed, and the process aborts with a message if the rules
// of device_runtime.h are broken. New device memory contains NaN.
//
// The fake is as strict as the real driver about rules that are easy to forget. Memsets, and copies
// from pageable memory, return before they have run, and no stream waits for them. Most functions
// need a context on the calling thread. A thread that is capturing a stream must not allocate,
// free, wait or load a kernel.
//
// Like the real driver, the fake exists only once per process. It simulates a machine with the GPUs
// that FakeMachine describes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/cuda/driver_api.h"
#include "runtime/device/fake_runtime.h"

namespace tfjob::device::cuda {

// A launch of a kernel. `parameter` contains the bytes of the kernel's parameter, in which each
// device address has been replaced by the address at which the contents are stored.
struct FakeLaunch {
  unsigned grid[3], block[3];
  std::span<const std::byte> parameter;
};
struct FakeKernel {
  size_t parameter_bytes = 0;
  std::function<void(const FakeLaunch&)> run;
};

struct FakeGpu {
  std::string name = "Fake GPU";
  int compute_major = 9, compute_minor = 0;
  size_t memory_bytes = size_t{1} << 34;
  size_t used_by_others = 0;  // bytes that other processes use
};

struct FakeMachine {
  uint64_t seed = 1;
  int driver_version = 13000;
  std::vector<FakeGpu> gpus = {FakeGpu()};
  std::map<std::string, FakeKernel> kernels;
  // Makes functions fail: maps a symbol ("cuMemAlloc_v2") to the result that the function returns.
  std::map<std::string, Result> failures;
  // Allocates the memory that stores the contents of device memory (FakeOptions::allocate).
  std::function<std::shared_ptr<std::byte>(size_t bytes, const std::string& name)> allocate;
  // Called when a copy or a memset runs, with an address and a number of bytes: before it reads
  // these bytes, and after it has written them. May be empty.
  std::function<void(const void*, size_t)> reads, wrote;
  // Returns how long an operation takes, for the timeline (FakeOptions::seconds). May be empty.
  std::function<double(const Operation&)> seconds;
  // See FakeOptions.
  bool threads_are_processes = false;
};

// Returns the functions of the driver, which simulate this machine from now on. No handle from an
// earlier machine may still be in use.
const DriverApi& FakeDriver(FakeMachine machine);
// Returns the functions, without changing the machine. FakeDriver must have been called.
const DriverApi& FakeDriverFunctions();

// Returns whether the stream is capturing a sequence.
bool FakeDriverCaptures(StreamHandle stream);

// Submits an operation to a stream, for libraries that launch their own kernels. FakeDriverCalls
// counts the operation under its name.
Result SubmitToFakeDriver(Operation operation, StreamHandle stream);

// Returns how often each function has been called since FakeDriver was called, by symbol. Refused
// calls do not count: calls of functions in FakeMachine::failures, and calls that broke a rule
// about contexts or captures.
std::map<std::string, int> FakeDriverCalls();

// Returns the names of the operations in each graph that has been instantiated since FakeDriver was
// called. A kernel has its own name, and a library call counts as one operation.
std::vector<std::vector<std::string>> FakeDriverGraphs();

// Returns all operations since FakeDriver was called, if FakeMachine::seconds is set.
std::vector<TimedOperation> FakeDriverTimeline();

}  // namespace tfjob::device::cuda
