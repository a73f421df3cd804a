// Distributes the examples of a batch among threads, for sources whose examples take a long time to
// read.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::data {

// Runs a function for each example on several threads. Only one thread may use a pool.
class RowPool {
 public:
  // Uses up to `threads` threads, including the caller's. `threads` must be at least 1.
  explicit RowPool(int threads);

  size_t lanes() const { return lanes_; }
  // Calls read(lane, row) for each row in [0, rows). The lane is in [0, lanes()). Calls with
  // different lanes may run at the same time, but calls with the same lane never do, so each lane
  // can have its own buffers. After an error, no further calls are started. Returns the error of
  // the lowest row that has one.
  Status ForEach(size_t rows, absl::FunctionRef<Status(size_t lane, size_t row)> read);

 private:
  size_t lanes_;
  ThreadPool pool_;
};

}  // namespace tfjob::data
