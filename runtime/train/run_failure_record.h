// Lets a run that has failed for good (state::RunFailure) stay failed: the chief records it in the
// run's folder, and every task of the run that starts afterwards ends with the same words.
#pragma once

#include "runtime/base/status.h"
#include "runtime/train/run_mark.h"
#include "runtime/train/task.h"

namespace tfjob::train {

// Returns the recorded error (state::RunFailure) if this task's run has failed, else OK. A record
// that cannot be read counts as none.
Status RecordedFailure(TaskContext& context);

// Records the failure in model_dir, unless it is "", and shows it in this task's progress. Tries
// again for up to 10 s if the disk fails, and gives up a disk that hangs; both are logged. `step`
// is the last one that was completed. Only the chief calls this.
void RecordFailure(TaskContext& context, const Status& failure, int64_t step);

}  // namespace tfjob::train
