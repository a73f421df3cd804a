// Manages the resources for one run of a program on a device that is not immediate: memory for the
// run's feeds and fetches, and the program's segments as captured sequences that read and write
// this memory. A program has one slot for each run that may be in progress.
//
// The feeds go through pinned memory to the device on a separate stream, so that they are copied
// while an earlier run is computing. The fetches are copied back to pinned memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device/device_runtime.h"
#include "runtime/exec/program.h"
#include "runtime/exec/program_state.h"
#include "runtime/kernels/stream.h"

namespace tfjob::exec {

class RunSlot {
 public:
  // Captures the segments. The state must be complete except for its slots, and must outlive the
  // slot.
  static StatusOr<std::unique_ptr<RunSlot>> Create(Program::State& state, ThreadPool* pool);
  // Waits for a run that is in progress.
  ~RunSlot();

  // Copies `feeds`, which must match the program's feeds, and submits the run with this number. No
  // run of this slot may be in progress.
  void Start(std::span<const Feed> feeds, int64_t run);
  // Waits until the run has finished, and returns its error. Calls on_ready(i) as soon as announced
  // fetch i is ready.
  Status Wait(absl::FunctionRef<void(int)> on_ready);

  // Returns the address of the fetch's value from the last run for which Wait was called.
  const std::byte* fetched(int fetch) const { return fetched_[static_cast<size_t>(fetch)]; }

 private:
  RunSlot(Program::State& state, ThreadPool* pool);
  Status Allocate();
  Status AllocateResults();
  // Submits the copies of the feeds.
  void CopyFeeds(std::span<const Feed> feeds);
  // Allocates the memory for refusals, if kernels of the program may refuse their inputs and
  // another slot has not allocated it.
  Status AllocateRefusals();
  Status Capture();
  // Submits the kernels and the copies of the fetches.
  void SubmitSegment(size_t number);
  // Reads which kernel, if any, has refused its inputs.
  void ReadRefusal();

  Program::State& s_;
  device::DeviceRuntime& runtime_;
  kernels::Stream stream_;  // collects the run's error
  std::vector<size_t> feed_offsets_;
  size_t feed_bytes_ = 0;
  device::Memory staged_;  // the feeds in pinned memory
  device::Memory fed_;     // the feeds in device memory
  // The fetches in pinned memory, except those that stay on the device. Each fetch has its own
  // allocation, because the host reads an announced fetch while others are being copied.
  std::vector<device::Memory> results_;
  std::vector<const std::byte*> fetched_;
  std::vector<std::unique_ptr<device::Sequence>> sequences_;  // by segment
  std::vector<std::unique_ptr<device::Event>> ended_;         // by segment
  std::unique_ptr<device::Event> copied_;                     // covers the copies of the feeds
  // A copy of the program's record of a refusal, in pinned memory. Only the first segment contains
  // kernels that may refuse their inputs, because no fetch is announced before all checks have run.
  device::Memory read_refusal_;
};

}  // namespace tfjob::exec
