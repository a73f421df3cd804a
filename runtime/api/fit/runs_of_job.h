// Counts the runs of a job in which this process takes part, one after another. Private to this
// package.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/train/task.h"

namespace tfjob::api {

struct RunUse {
  bool followed = false;    // FitOptions::followed_by_fit
  std::string folder = {};  // of the checkpoints; "" for none
};

// Records that this process takes part in the next run of its job, and returns the run's place. A
// process that trains alone may begin any number of runs, all of which have the number 0. Every
// other run needs all tasks of the job, and the port of this one. Therefore returns Unimplemented
// unless the previous run was followed and has ended (EndRun), and InvalidArgument if an earlier
// run has used the same folder.
StatusOr<train::RunOrder> BeginRun(const cluster::TfConfig& tf_config, const RunUse& use = {});

// Records that a run that is followed has ended without an error, so that the next one may begin.
// The chief passes the step at which the run has ended.
void EndRun(const cluster::TfConfig& tf_config, std::optional<int64_t> end = std::nullopt);

// Forgets all runs, as if the process had been started again. For tests.
void ForgetRuns(const cluster::TfConfig& tf_config);

}  // namespace tfjob::api
