// Holds the time until which this process may act as the leader. Writers check it before
// each write.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"

namespace tfjob::kube {

// Thread-safe; a check costs one atomic load and one read of the clock. Starts as not held.
// Leadership ends by itself if it is not extended in time, and once ended it stays ended.
class Leadership {
 public:
  explicit Leadership(Clock& clock) : clock_(clock) {}

  bool held() const;
  // Extends leadership until this time of Clock::Monotonic(). Returns false and changes nothing if
  // leadership has ended or had already expired.
  bool Extend(Duration until);
  // Ends leadership permanently.
  void End();

 private:
  static constexpr int64_t kNever = 0;   // not held yet
  static constexpr int64_t kEnded = -1;  // ended permanently

  Clock& clock_;
  std::atomic<int64_t> until_{kNever};  // microseconds
};

}  // namespace tfjob::kube
