// Runs the roles of a job's tasks that do not train, on behalf of CompiledModel::Fit and of
// Estimators. Private to this package.
#pragma once

#include <functional>

#include "runtime/api/compiled_state.h"
#include "runtime/base/stop.h"
#include "runtime/train/task.h"

namespace tfjob::api {

// Calls `run` with what asks the process to stop: its signals, unless the session leaves them to
// the program.
tfjob::Status UntilSignal(const SessionOptions& options,
                          const std::function<tfjob::Status(const StopSource&)>& run);

// Returns Unimplemented if this process has already taken part in a run of its job. Each run of a
// job with several tasks needs all tasks, and the port of this one. Records the run otherwise.
tfjob::Status TakeTheOnlyRun(const cluster::TfConfig& tf_config);

// Runs a ps or an evaluator until its job has ended, and then returns the Cancelled of a task
// without a model of its own (JobOver). Returns another Cancelled if the process is asked to stop
// before, and otherwise the error that has ended the task.
tfjob::Status RunUntilJobEnds(train::TaskOptions task, const SessionOptions& options);

}  // namespace tfjob::api
