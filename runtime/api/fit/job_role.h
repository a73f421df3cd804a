// Runs the tasks of a job that do not train, for CompiledModel::Fit and for Estimators. Private to
// this package.
#pragma once

#include <functional>

#include "runtime/api/compiled_state.h"
#include "runtime/api/fit/runs_of_job.h"
#include "runtime/base/stop.h"
#include "runtime/train/task.h"

namespace tfjob::api {

// Calls `run` with a StopSource that SIGTERM and SIGINT trigger, unless the session leaves the
// signals to the program.
tfjob::Status UntilSignal(const SessionOptions& options,
                          const std::function<tfjob::Status(const StopSource&)>& run);

// Runs a ps or an evaluator until its job has ended, and then returns Cancelled with the mark of
// JobOver, because the task has no trained model. If the process is asked to stop earlier, returns
// Cancelled without the mark. If the task fails, returns its error. If another run follows, only
// takes part in one run, and returns OK; a ps that finds the result of this run in the folder does
// not serve.
tfjob::Status RunUntilJobEnds(train::TaskOptions task, const SessionOptions& options,
                              const RunUse& use = {});

}  // namespace tfjob::api
