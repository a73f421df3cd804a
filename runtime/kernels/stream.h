// Represents where kernels run. On a CPU, this is the calling thread, with a pool of threads that
// help it. On a GPU (not implemented yet), it will be the device's stream. A stream must outlive
// the calls that use it. Only one thread may use a stream at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/kernels/flush_denormals.h"

namespace tfjob::kernels {

class Stream {
 public:
  // If `pool` is null, everything runs on the calling thread. The pool is not owned and must
  // outlive the stream.
  explicit Stream(ThreadPool* pool = nullptr) : pool_(pool) {}

  // Returns the largest number of threads that ParallelFor uses, including the calling one.
  int threads() const { return pool_ == nullptr ? 1 : pool_->threads() + 1; }

  // Calls body(begin, end) over ranges that cover [0, count), each of at least `grain`
  // indices. If there is only one thread, or too little work for two, calls body(0, count) on
  // the calling thread.
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
    pool_->ParallelFor(count, grain, std::cref(flushed));  // by reference: does not allocate
  }

  // Reports that a kernel cannot compute its outputs because the values of its inputs are
  // impossible, such as the index of a row that a table does not have. Keeps the first error.
  // Called on the thread that runs the kernel.
  void Fail(Status error) {
    if (status_.ok()) status_ = std::move(error);
  }
  bool ok() const { return status_.ok(); }
  // Returns the error that Fail has kept, and clears it.
  Status TakeStatus() { return std::exchange(status_, OkStatus()); }

 private:
  ThreadPool* pool_;
  Status status_;
};

}  // namespace tfjob::kernels
