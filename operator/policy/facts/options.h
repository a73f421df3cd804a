// Holds the operator's settings that decisions depend on, and reads the seconds of specs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct Options {
  // Gang settings for jobs that specify none.
  Gang gang;
  // Recreations of one index wait 0, then this delay, then twice this delay, … up to the maximum.
  // The series starts again after a pod has run for the reset time.
  Duration restart_delay = 1s;
  Duration restart_delay_maximum = 5min;
  Duration restart_delay_reset = 10min;
  // How often a name held by another owner is tried again.
  Duration blocked_retry = 2s;
  // How long a pod on a node that is not Ready may outlive its grace period before it
  // counts as lost.
  Duration lost_pod_after = 60s;
};

// Makes seconds as users write them safe to add to a time: clamps to between 0 and a hundred years.
// More means never, less means now.
inline Duration Seconds(int64_t seconds) {
  constexpr int64_t kHundredYears = 100LL * 366 * 24 * 3600;
  return std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kHundredYears));
}

}  // namespace tfjob::policy
