// Stores the time until which this process may act as the leader. Writers check this before each
// write.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"

namespace tfjob::kube {

// Tracks whether this process leads. Thread-safe. A check costs one atomic load and one read of the
// clock. Initially, leadership is not held. Leadership ends automatically if it is not extended in
// time, and cannot be regained after it has ended.
class Leadership {
 public:
  explicit Leadership(Clock& clock) : clock_(clock) {}

  bool held() const;
  // Extends leadership until the time `until` of Clock::Monotonic(). Returns false and changes
  // nothing if leadership has ended or expired, or if `until` has already passed.
  bool Extend(Duration until);
  // Ends leadership permanently.
  void End();

 private:
  static constexpr int64_t kNever = 0;   // not held yet
  static constexpr int64_t kEnded = -1;  // ended permanently

  Clock& clock_;
  std::atomic<int64_t> until_{kNever};  // microseconds of Clock::Monotonic()
};

}  // namespace tfjob::kube
