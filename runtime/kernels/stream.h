// Where a kernel runs. On a CPU it is the calling thread and the pool that helps it; on a GPU
// (later) the device's stream. A value that its caller keeps alive; used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/thread_pool.h"
#include "runtime/kernels/flush_denormals.h"

namespace tfjob::kernels {

class Stream {
 public:
  // Null: everything in the calling thread. The pool is borrowed.
  explicit Stream(ThreadPool* pool = nullptr) : pool_(pool) {}

  // The threads that work, the caller included.
  int threads() const { return pool_ == nullptr ? 1 : pool_->threads() + 1; }

  // body(begin, end) over ranges that cover [0, count), each of at least `grain` indices. With one
  // thread, or too little work for two, it is a plain call.
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
    pool_->ParallelFor(count, grain, std::cref(flushed));  // by reference: nothing is allocated
  }

 private:
  ThreadPool* pool_;
};

}  // namespace tfjob::kernels
