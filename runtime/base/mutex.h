// Wraps std::mutex with clang's thread-safety attributes (absl/base/thread_annotations.h), so that
// both clang (--config=clang) and ThreadSanitizer can check the locking. Abseil's mutex would hide
// races from ThreadSanitizer, because Debian's library is not instrumented.
//
//   Mutex mutex_;
//   int count_ ABSL_GUARDED_BY(mutex_);
//   void Add() { MutexLock lock(mutex_); ++count_; changed_.NotifyAll(); }
//   void AwaitTen() { MutexLock lock(mutex_); while (count_ < 10) changed_.Wait(mutex_); }
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "runtime/base/scheduler.h"

namespace tfjob {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (Scheduler* scheduler = Scheduler::Installed()) return scheduler->Lock(*this);
    mutex_.lock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    if (Scheduler* scheduler = Scheduler::Installed()) return scheduler->Unlock(*this);
    mutex_.unlock();
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A wait may return without a notification, so wait in a loop that checks the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (Scheduler* scheduler = Scheduler::Installed()) {
      scheduler->Wait(*this, mutex, SteadyTime::max());
      return;
    }
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // Waits for a notification. Returns false if the deadline has passed. Changes of the system clock
  // do not affect the wait.
  bool WaitUntil(Mutex& mutex, SteadyTime deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (Scheduler* scheduler = Scheduler::Installed()) {
      return scheduler->Wait(*this, mutex, deadline);
    }
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const auto result = condition_.wait_until(lock, deadline);
    lock.release();
    return result == std::cv_status::no_timeout;
  }

  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return WaitUntil(mutex, SteadyNow() + timeout);
  }

  void NotifyOne() {
    if (Scheduler* scheduler = Scheduler::Installed()) return scheduler->NotifyOne(*this);
    condition_.notify_one();
  }
  void NotifyAll() {
    if (Scheduler* scheduler = Scheduler::Installed()) return scheduler->NotifyAll(*this);
    condition_.notify_all();
  }

 private:
  std::condition_variable condition_;
};

}  // namespace tfjob
