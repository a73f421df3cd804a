// Defines the internals of a Program, which the code for compiling, running and printing shares.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device_runtime.h"
#include "runtime/exec/plan.h"
#include "runtime/exec/program.h"
#include "runtime/kernels/stream.h"

namespace tfjob::exec {

class RunSlot;

// A prepared kernel with its operands' addresses.
struct Step {
  std::unique_ptr<kernels::Kernel> kernel;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<variables::Variable*> written;
};

// A kernel input whose address is that of a feed: the caller's feed or, if the device is not
// immediate, the slot's copy.
struct FedInput {
  int step;
  int input;
  int feed;
};

// An input or an output of a kernel whose address is the memory of a placed fetch.
struct PlacedOperand {
  int step;
  bool output;
  int position;  // among the inputs or the outputs of the step
  int fetch;
};

// Steps [begin, end), and the announced fetches that are ready after them.
struct Segment {
  int begin = 0;
  int end = 0;
  std::vector<int> announced;
};

// A run that was started and has not been waited for yet.
struct RunInProgress {
  int64_t number = 0;
  size_t slot = 0;
};

struct Program::State {
  State();
  ~State();

  Plan plan;
  MemoryPlan memory;
  std::string device;
  std::shared_ptr<device::DeviceRuntime> runtime;
  device::Memory arena;
  std::vector<device::Memory> constants;
  void* workspace = nullptr;  // in the arena, after the buffers; large enough for any kernel
  size_t workspace_bytes = 0;
  std::vector<Port> feeds;
  std::vector<Port> fetches;
  std::vector<Step> steps;
  std::vector<FedInput> fed_inputs;
  std::vector<PlacedOperand> placed_operands;  // ordered by fetch
  std::vector<Segment> segments;
  std::vector<const std::byte*> fetched;  // address of each fetch; null before Program::Place
  std::vector<bool> kept;                 // by fetch: see CompileOptions

  // The first `runs` elements are in use, oldest run first.
  std::array<RunInProgress, kMaxRuns> in_progress;
  size_t runs = 0;
  int64_t started = 0;  // the number of runs so far
  size_t slot = 0;      // the slot of the run whose fetches are read

  // Used only on an immediate device: the callers' feeds, and the stream on which Wait runs the
  // kernels.
  std::array<std::vector<Feed>, kMaxRuns> bound;
  kernels::Stream stream;

  // The error that all runs in progress report, because a run fails if an earlier one that was in
  // progress when it was started has failed. Cleared when no run is in progress.
  kernels::Failure failure;

  // Used only on devices that are not immediate.
  std::unique_ptr<device::Stream> compute, copies;
  // The record, in device memory, of the kernel that refused its inputs, and zeros for clearing the
  // record. The slots share the record, so once a run has filled it, the runs after it change no
  // variable. Null if no kernel of the program may refuse its inputs.
  device::Memory refusal, no_refusal;
  bool clear_refusal = false;  // whether to clear the record before the next run
  std::array<std::unique_ptr<RunSlot>, kMaxRuns> slots;
};

}  // namespace tfjob::exec
