#include "runtime/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace tfjob {

void SetThreadName(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

ThreadPool::ThreadPool(std::string name, int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      SetThreadName(name);
      Work();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
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
  while (true) {
    std::function<void()> closure;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) wake_.Wait(mutex_);
      if (queue_.empty()) return;
      closure = std::move(queue_.front());
      queue_.pop_front();
    }
    closure();
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
  Mutex done_mutex;
  CondVar done;
  int64_t left = pieces - 1;
  for (int64_t piece = 1; piece < pieces; ++piece) {
    Schedule([&, piece] {
      body(count * piece / pieces, count * (piece + 1) / pieces);
      MutexLock lock(done_mutex);
      if (--left == 0) done.NotifyOne();
    });
  }
  body(0, count / pieces);
  MutexLock lock(done_mutex);
  while (left > 0) done.Wait(done_mutex);
}

}  // namespace tfjob
