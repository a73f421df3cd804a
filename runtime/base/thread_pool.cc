#include "runtime/base/thread_pool.h"

#include <algorithm>
#include <utility>

namespace tfjob {

ThreadPool::ThreadPool(std::string name, int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back(name, [this] { Work(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (Thread& thread : threads_) thread.Join();
}

void ThreadPool::Schedule(std::function<void()> closure) {
  if (threads_.empty()) {
    closure();
    return;
  }
  {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(closure));
  }
  wake_.NotifyOne();
}

void ThreadPool::Work() {
  MutexLock lock(mutex_);
  while (true) {
    while (loops_ == nullptr && queue_.empty() && !stopping_) wake_.Wait(mutex_);
    if (loops_ != nullptr) {
      TakePieces(*loops_);
    } else if (!queue_.empty()) {
      std::function<void()> closure = std::move(queue_.front());
      queue_.pop_front();
      mutex_.Unlock();
      closure();
      closure = nullptr;  // free its captures while unlocked: a destructor may use the pool
      mutex_.Lock();
    } else {
      return;
    }
  }
}

void ThreadPool::Append(Loop& loop) {
  Loop** last = &loops_;
  while (*last != nullptr) last = &(*last)->after;
  *last = &loop;
}

void ThreadPool::Remove(Loop& loop) {
  Loop** place = &loops_;
  while (*place != &loop) place = &(*place)->after;
  *place = loop.after;
}

void ThreadPool::TakePieces(Loop& loop) {
  while (loop.next < loop.pieces) {
    const int64_t piece = loop.next++;
    if (loop.next == loop.pieces) Remove(loop);
    mutex_.Unlock();
    loop.Run(piece);
    mutex_.Lock();
    // If this was the last piece to finish, the caller of ParallelFor may destroy the loop as soon
    // as the lock is released.
    if (--loop.unfinished == 0) {
      loop.finished.NotifyOne();
      return;
    }
    if (loop.next == loop.pieces) return;
  }
}

void ThreadPool::ParallelFor(int64_t count, int64_t grain,
                             const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  const int64_t pieces =
      std::min<int64_t>(threads() + 1, std::max<int64_t>(1, count / std::max<int64_t>(1, grain)));
  if (pieces == 1) {
    body(0, count);
    return;
  }
  Loop loop{.body = body, .count = count, .pieces = pieces, .unfinished = pieces};
  MutexLock lock(mutex_);
  Append(loop);
  for (int64_t helper = 1; helper < pieces; ++helper) wake_.NotifyOne();
  TakePieces(loop);
  while (loop.unfinished > 0) loop.finished.Wait(mutex_);
}

}  // namespace tfjob
