// Divides the time that a task has between SIGTERM and SIGKILL.
#pragma once

#include "runtime/base/clock.h"

namespace tfjob::train {

// Each duration counts from the request to stop. `answer` ends first, then `serving`, then
// `process`.
struct StopBudget {
  Duration answer;   // the step in progress may still be answered
  Duration serving;  // a parameter server still serves
  Duration process;  // then the process ends, whatever it is doing
};
// With Kubernetes' default grace period of 30 s, the durations are 5 s, 20 s and 25 s. A longer
// period leaves the same margins before its end, so that the chief has nearly all of it to save a
// checkpoint; a shorter one is divided in the same proportion.
StopBudget BudgetOf(Duration grace_period);

}  // namespace tfjob::train
