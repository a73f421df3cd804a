// Represents the place where kernels run. On a CPU, kernels run on the calling thread and on a pool
// of additional threads. On other devices, kernels submit their work to a device stream, and return
// before the work is done. A Stream must outlive the work that is submitted to it. Only one thread
// at a time may use a Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device/device_runtime.h"
#include "runtime/kernels/flush_denormals.h"

namespace tfjob::kernels {

// Describes an error. A kernel writes a Refusal to the device's memory if the values of its inputs
// are invalid.
struct Refusal {
  int64_t number = 0;  // from Stream::OnRefusal; 0 if there is no error
  int64_t position = 0, value = 0;
};

// Records the first error among the runs that share the record. Runs are numbered in the order in
// which they execute.
struct Failure {
  Status status;
  int step = 0;     // the kernel's index in its program
  int64_t run = 0;  // the run in which the kernel failed
};

class Stream {
 public:
  // Creates a stream on the CPU. If `pool` is null, all work runs on the calling thread. The pool
  // is not owned, and must outlive the stream.
  explicit Stream(ThreadPool* pool = nullptr) : pool_(pool) {}
  // Creates a stream on a device that is not immediate. The pool, the runtime and the queue are not
  // owned, and must outlive the stream.
  Stream(ThreadPool* pool, device::DeviceRuntime& runtime, device::Stream& queue)
      : pool_(pool), runtime_(&runtime), queue_(&queue) {}

  ThreadPool* pool() const { return pool_; }
  // Return the runtime and the queue to which kernels submit their work, or null on a CPU.
  device::DeviceRuntime* runtime() const { return runtime_; }
  device::Stream* queue() const { return queue_; }

  // Copies between two ranges of memory that kernels can access. The copy runs after all previously
  // submitted work. The ranges must not overlap.
  void Copy(void* to, const void* from, size_t bytes) {
    if (runtime_ != nullptr) return runtime_->Copy(to, from, bytes, *queue_);
    std::memcpy(to, from, bytes);
  }

  // Returns the largest number of threads that ParallelFor uses, including the calling thread.
  int threads() const { return pool_ == nullptr ? 1 : pool_->threads() + 1; }

  // Calls body(begin, end) for ranges that together cover [0, count), each with at least `grain`
  // indices. If there is only one thread, or too little work for two threads, calls body(0, count)
  // on the calling thread. If `count` is 0, does not call body.
  template <typename Body>
  void ParallelFor(int64_t count, int64_t grain, const Body& body) {
    const auto flushed = [&body](int64_t begin, int64_t end) {
      const FlushDenormals flush;
      body(begin, end);
    };
    if (pool_ == nullptr || count < 2 * grain) {
      if (count > 0) flushed(int64_t{0}, count);
      return;
    }
    pool_->ParallelFor(count, grain, std::cref(flushed));  // by reference, to avoid an allocation
  }

  // Reports that a kernel cannot compute its outputs because the values of its inputs are invalid,
  // for example because an index is out of range. Only the first error is recorded. Must be called
  // on the thread that runs the kernel.
  void Fail(Status error) { FailAt(step_, std::move(error)); }
  // Like Fail, but for a kernel that was submitted earlier, when the current step was `step`.
  void FailAt(int step, Status error) {
    if (!failure().status.ok()) return;
    failure() = {.status = std::move(error), .step = step, .run = run_};
  }

  // Makes this stream share a record of errors with the streams of other runs, so that no kernel of
  // a run starts after an earlier run has failed. The record is not owned.
  void ShareFailure(Failure* failure) { shared_ = failure; }
  // Sets the number of the run whose kernels follow. Call this function before each run if the
  // record is shared.
  void BeginRun(int64_t run) { run_ = run; }

  // Returns the location of the Refusal in the device's memory, or null if the owner of the stream
  // does not read refusals. Submitted work cannot call Fail when it runs. Instead, it writes a
  // Refusal to this location, unless another kernel has already done so. The owner copies the
  // Refusal to the host, and passes it to Refuse. Work that updates variables must not change them
  // if there is a Refusal.
  Refusal* refusal() const { return refusal_; }
  void set_refusal(Refusal* refusal) { refusal_ = refusal; }
  // Registers the current kernel, and returns the number that its Refusals must contain. `describe`
  // converts a Refusal to the error to report.
  int64_t OnRefusal(std::function<Status(const Refusal&)> describe) {
    refusing_.push_back({step_, std::move(describe)});
    return refusals();
  }
  // Returns the number of calls of OnRefusal.
  int64_t refusals() const { return static_cast<int64_t>(refusing_.size()); }
  // Reports the error that `refusal` describes. Does nothing if there is no error.
  void Refuse(const Refusal& refusal) {
    if (refusal.number < 1 || refusal.number > refusals()) return;
    const RefusingKernel& kernel = refusing_[static_cast<size_t>(refusal.number - 1)];
    FailAt(kernel.step, kernel.describe(refusal));
  }

  // Sets the index of the current kernel in its program. Call this function before each kernel.
  void BeginStep(int step) { step_ = step; }
  int step() const { return step_; }
  // Returns the index of the first kernel that failed.
  int failed_step() const { return failure().step; }
  // Returns whether neither the current run nor an earlier run that shares the record has failed.
  bool ok() const { return failure().status.ok() || failure().run > run_; }
  // Returns the recorded error, if any, and clears it.
  Status TakeStatus() { return std::exchange(failure().status, OkStatus()); }

 private:
  struct RefusingKernel {
    int step = 0;
    std::function<Status(const Refusal&)> describe;
  };

  Failure& failure() { return shared_ == nullptr ? own_ : *shared_; }
  const Failure& failure() const { return shared_ == nullptr ? own_ : *shared_; }

  ThreadPool* pool_;
  device::DeviceRuntime* runtime_ = nullptr;
  device::Stream* queue_ = nullptr;
  int step_ = 0;
  int64_t run_ = 0;
  Failure own_;
  Failure* shared_ = nullptr;  // used instead of own_ unless it is null
  Refusal* refusal_ = nullptr;
  std::vector<RefusingKernel> refusing_;
};

}  // namespace tfjob::kernels
