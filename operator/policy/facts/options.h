// The operator's settings that decisions depend on.
#pragma once

#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct Options {
  // How jobs are placed that do not say it themselves.
  Gang gang;
  // Recreations of one index wait 0, then this, then twice this, … up to the maximum; the series
  // starts anew after a pod has run for the reset time.
  Duration restart_delay = 1s;
  Duration restart_delay_maximum = 5min;
  Duration restart_delay_reset = 10min;
  // How often a name that a stranger holds is tried again.
  Duration blocked_retry = 2s;
  // How long a pod may outstay its grace period on a node that is not Ready before it is called
  // lost.
  Duration lost_pod_after = 60s;
};

}  // namespace tfjob::policy
