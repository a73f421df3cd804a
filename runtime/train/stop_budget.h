// Divides the time between SIGTERM and SIGKILL among the parts of a task.
#pragma once

#include "runtime/base/clock.h"

namespace tfjob::train {

// The deadlines of a task's parts. Each duration is measured from the request to stop. `answer` is
// the shortest, and `process` is the longest.
struct StopBudget {
  Duration answer;   // deadline for answers to the step in progress
  Duration serving;  // how long a parameter server keeps serving
  Duration process;  // when the process exits unconditionally
};
// With Kubernetes' default grace period of 30 s, the durations are 5 s, 20 s and 25 s. With a
// longer period, the margins before the end of the period stay the same, so the chief can use
// nearly the whole period to save a checkpoint. A shorter period is split in the same proportions.
StopBudget BudgetOf(Duration grace_period);

}  // namespace tfjob::train
