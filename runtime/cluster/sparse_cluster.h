// Derives the tasks that may train from the sparse form of TF_CONFIG, which lists only the task
// itself and the parameter servers.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::cluster {

// Returns the addresses of the chief and of the workers: `config.patterns` or, if these are empty,
// patterns that follow from the task's own address, because an operator gives the tasks of a job
// names such as mnist-worker-3.ns.svc:2222. All types then have the same port. `config` must have
// the sparse form, and its task must train. Returns InvalidArgument, with the name of the variable
// that helps,
//   - if it is unknown which task is the chief,
//   - if the task's own address does not begin with such a name, or
//   - if the patterns lack the chief or the workers, or contradict the task's address.
StatusOr<AddressPatterns> PatternsOf(const TfConfig& config);

// Returns a TfConfig in the list form (TfConfig::open) for the same task. Its cluster contains
// the first `tasks` tasks that may train: the chief, then the workers from index 0. It also
// contains the task itself, the parameter servers in `config`, and evaluator 0 if the job has an
// evaluator as far as the patterns say. Propagates errors from PatternsOf, and returns
// InvalidArgument if two tasks would have the same address, or if an address would not be valid.
StatusOr<TfConfig> ListTasks(const TfConfig& config, int tasks);

}  // namespace tfjob::cluster
