// Decides when an operation has taken longer than a group allows (EndpointOptions::
// exchange_timeout).
//
// Pure: the caller passes in the time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/clock.h"
#include "runtime/collectives/communicator.h"

namespace tfjob::collectives {

// Not thread-safe.
class ExchangeTimer {
 public:
  // `limit` is 0 if there is none.
  explicit ExchangeTimer(Duration limit) : limit_(limit) {}

  // Returns whether the operation of `wait` must be aborted. Call several times per second. `busy`
  // means that the rank that the group waits for has announced a phase that is not overdue
  // (StuckNotice); this time does not count.
  bool IsLate(Duration now, const Waiting& wait, bool busy) {
    if (wait.on < 0 || wait.operation != operation_) {
      operation_ = wait.on < 0 ? 0 : wait.operation;
      since_ = wait.since;
    }
    if (busy) since_ = std::max(since_, now);
    return limit_ > Duration(0) && wait.on >= 0 && now - since_ >= limit_;
  }
  // Call if another generation follows.
  void Reset() { operation_ = 0; }

 private:
  const Duration limit_;
  int64_t operation_ = 0;  // the ordinal of the operation that waits; 0: none waits
  Duration since_{0};      // from when on its time counts
};

}  // namespace tfjob::collectives
