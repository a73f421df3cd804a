// Splits the time that a task has between SIGTERM and SIGKILL.
#pragma once

#include "runtime/base/clock.h"

namespace tfjob::train {

// Each duration is measured from the request to stop. `answer` is the shortest, and `process` is
// the longest.
struct StopBudget {
  Duration answer;   // until then, the step in progress may still be answered
  Duration serving;  // until then, a parameter server still serves
  Duration process;  // then the process ends, whatever it is doing
};
// With Kubernetes' default grace period of 30 s, the durations are 5 s, 20 s and 25 s. With a
// longer period, the margins before its end stay the same, so that the chief can use nearly all of
// it to save a checkpoint. A shorter period is split in the same proportions.
StopBudget BudgetOf(Duration grace_period);

}  // namespace tfjob::train
