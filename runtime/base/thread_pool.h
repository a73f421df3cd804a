// Runs closures on a fixed set of threads, and splits the iterations of a loop among them
// (ParallelFor). Waiting threads sleep; they never spin.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"

namespace tfjob {

// Thread-safe. The destructor runs all scheduled closures, then joins the threads. Closures must
// not throw.
class ThreadPool {
 public:
  // `threads` must be ≥ 0; if it is 0, every closure runs on the caller's thread. ps and gdb show
  // the threads under `name`, truncated to 15 characters.
  ThreadPool(std::string name, int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

  void Schedule(std::function<void()> closure);

  // Splits [0, count) into at most threads() + 1 ranges of at least `grain` indices each and calls
  // body(begin, end) for each range, on the pool's threads and the caller's thread. Returns when
  // all calls are done. Does not allocate. Must not be called from a closure of the same pool.
  void ParallelFor(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

 private:
  // A ParallelFor in progress, split into pieces that the threads take one by one. The object is on
  // the stack of the thread that called ParallelFor, and must exist until `unfinished` is 0. It is
  // in the list loops_ while it has pieces left to take.
  struct Loop {
    const std::function<void(int64_t, int64_t)>& body;
    int64_t count;
    int64_t pieces;
    int64_t next = 0;  // the first piece that no thread has taken
    int64_t unfinished = 0;
    Loop* after = nullptr;
    CondVar finished;

    void Run(int64_t piece) const { body(count * piece / pieces, count * (piece + 1) / pieces); }
  };

  void Work();
  // Takes and runs pieces until none are left. When it takes the last piece, removes the loop from
  // the list. Releases the mutex while a piece runs.
  void TakePieces(Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Append(Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::vector<Thread> threads_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  Loop* loops_ ABSL_GUARDED_BY(mutex_) = nullptr;  // loops with pieces left to take, oldest first
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tfjob
