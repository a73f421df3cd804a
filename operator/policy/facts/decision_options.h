// Contains the operator's settings that affect decisions, and converts seconds from specs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/network_policy.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct DecisionOptions {
  // The gang settings for jobs that specify none.
  Gang gang;
  NetworkPolicies network_policies = NetworkPolicies::kNone;
  // The first recreation of a replica is not delayed. The second is delayed by restart_delay, the
  // third by twice that, and so on up to restart_delay_maximum. Once a pod has run for
  // restart_delay_reset, the count starts over.
  Duration restart_delay = 1s;
  Duration restart_delay_maximum = 5min;
  Duration restart_delay_reset = 10min;
  // How long the status keeps the UID of a counted pod (in `replacing`) after the pod is gone. An
  // operator whose watch does not deliver any events stops acting sooner than this
  // (service::kStaleAfter).
  Duration keep_counted = 5min;
  // How often the creation of a pod or service is retried while its name belongs to an object of
  // another owner.
  Duration blocked_retry = 2s;
  // How long an operator waits for a key that is not in its mounted folder of keys yet, and how
  // often it checks the folder. The wait starts when the operator first sees the job. A kubelet
  // takes about a minute to update a mount.
  Duration key_patience = 2min;
  Duration key_retry = 10s;
  // If the node of a terminating pod is not Ready or is gone, the pod counts as lost this long
  // after the end of its grace period.
  Duration lost_pod_after = 60s;
};

// Converts seconds from a user's spec to a duration, limited to the range from 0 (now) to a hundred
// years (never), so that adding it to a time does not overflow.
inline Duration Seconds(int64_t seconds) {
  constexpr int64_t kHundredYears = 100LL * 366 * 24 * 3600;
  return std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kHundredYears));
}

}  // namespace tfjob::policy
