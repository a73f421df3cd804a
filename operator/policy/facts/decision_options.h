// Holds the operator's settings that affect decisions, and converts seconds from specs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct DecisionOptions {
  // Gang settings for jobs that specify none.
  Gang gang;
  // The first recreation of an index does not wait. The second waits for this delay, the third for
  // twice this delay, and so on up to the maximum. Once a pod has run for the reset time, the count
  // starts again.
  Duration restart_delay = 1s;
  Duration restart_delay_maximum = 5min;
  Duration restart_delay_reset = 10min;
  // How often creation is retried while another owner holds the name.
  Duration blocked_retry = 2s;
  // How long after its grace period a pod on a node that is not Ready, or is gone, counts as lost.
  Duration lost_pod_after = 60s;
};

// Converts seconds written by a user to a duration that can safely be added to a time: limits them
// to between 0, which means now, and a hundred years, which means never.
inline Duration Seconds(int64_t seconds) {
  constexpr int64_t kHundredYears = 100LL * 366 * 24 * 3600;
  return std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kHundredYears));
}

}  // namespace tfjob::policy
