// Makes permanent failures of a run (state::RunFailure) survive restarts: the chief records the
// failure in the run's folder, and every task of the run that starts afterwards fails with the same
// message.
#pragma once

#include "runtime/base/status.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/train/task.h"

namespace tfjob::train {

// Returns the recorded error (state::RunFailure) if this task's run has failed, and otherwise OK. A
// record that cannot be read is treated as absent.
Status RecordedFailure(TaskContext& context);

// Records the failure in model_dir, unless model_dir is "", and shows it in this task's progress.
// Retries for up to 10 s if the disk fails, and gives up if the disk hangs; both are logged. `step`
// is the last completed step. Only the chief calls this.
void RecordFailure(TaskContext& context, const Status& failure, int64_t step);

}  // namespace tfjob::train
