// Finds the tasks of a group whose TF_CONFIG lists only the task itself.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"

namespace tfjob::train {

// If the task trains with multi_worker_mirrored, its TF_CONFIG has the sparse form, and the
// training file limits the number of tasks (strategy.max_replicas), returns a cluster that lists
// all tasks that may take part, and logs how they were found (cluster::ListTasks, whose errors it
// propagates). A worker beyond the limit is refused with InvalidArgument if the number of tasks is
// fixed. Otherwise, returns `tf_config`.
StatusOr<cluster::TfConfig> WithGroupTasks(const config::StrategyConfig& config,
                                           const cluster::TfConfig& tf_config);

}  // namespace tfjob::train
