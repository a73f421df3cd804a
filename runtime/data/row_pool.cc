#include "runtime/data/row_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/mutex.h"

namespace tfjob::data {
namespace {

// Keeps the error of the lowest row that has one.
class FirstError {
 public:
  bool found() const { return found_.load(std::memory_order_relaxed); }
  void Add(size_t row, Status error) {
    MutexLock lock(mutex_);
    if (!error_.ok() && row_ < row) return;
    row_ = row;
    error_ = std::move(error);
    found_.store(true, std::memory_order_relaxed);
  }
  Status Take() {
    MutexLock lock(mutex_);
    return error_;
  }

 private:
  std::atomic<bool> found_ = false;
  Mutex mutex_;
  size_t row_ ABSL_GUARDED_BY(mutex_) = 0;
  Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

RowPool::RowPool(int threads) : lanes_(static_cast<size_t>(threads)), pool_("decode", threads - 1) {
  ENFORCE(threads >= 1, "the caller's thread counts");
}

Status RowPool::ForEach(size_t rows, absl::FunctionRef<Status(size_t lane, size_t row)> read) {
  std::atomic<size_t> next = 0;
  FirstError error;
  // Some examples take longer than others, so each lane starts the next unread example when it has
  // finished the previous one.
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      while (!error.found()) {
        const size_t row = next.fetch_add(1, std::memory_order_relaxed);
        if (row >= rows) break;
        Status done = read(static_cast<size_t>(lane), row);
        if (!done.ok()) error.Add(row, std::move(done));
      }
    }
  };
  pool_.ParallelFor(static_cast<int64_t>(std::min(lanes_, rows)), 1, run);
  return error.Take();
}

}  // namespace tfjob::data
