// tfjob restart: restarts replicas without counting this as a failure of the job.
//
// The API has no field for this and does not need one. The operator recreates a deleted pod under
// every restart policy and does not count this restart towards backoffLimit; with restartScope Job,
// it starts a new attempt of all replicas (operator/policy). Therefore, the verb deletes the pods,
// each with its UID as a precondition, so a replacement is never deleted.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"
#include "operator/cli/verbs/replica_choice.h"

namespace tfjob::cli {

struct RestartOptions {
  std::vector<std::string> names;
  ReplicaChoice replicas;
};

// Restarts the chosen replicas. Returns kFailed if the server rejects a deletion or a job cannot be
// restarted. A job cannot be restarted if it does not exist, has ended, is suspended, is managed by
// another controller, lacks a chosen replica, or has no pod to restart.
int Restart(const RestartOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
