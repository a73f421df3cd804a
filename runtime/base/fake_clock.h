// Implements a clock for tests.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob {

// A clock that a test controls. Thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(Time start) : now_(start) {}
  Time Now() override {
    MutexLock lock(mutex_);
    return now_;
  }
  Duration Monotonic() override {
    MutexLock lock(mutex_);
    return elapsed_;
  }
  // Advances both Now() and Monotonic().
  void Advance(Duration by) {
    MutexLock lock(mutex_);
    now_ += by;
    elapsed_ += by;
  }
  // Moves the wall clock forward or, if `by` is negative, back. Monotonic() stays the same.
  void Step(Duration by) {
    MutexLock lock(mutex_);
    now_ += by;
  }

 private:
  Mutex mutex_;
  Time now_ ABSL_GUARDED_BY(mutex_);
  Duration elapsed_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace tfjob
