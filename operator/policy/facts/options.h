// Holds the operator's settings that decisions depend on.
#pragma once

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

}  // namespace tfjob::policy
