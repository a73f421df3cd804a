// tfjob restart: replicas begin anew, without a restart being counted against the job.
//
// The API has no word for it, and needs none: a pod that somebody deletes is created again under
// every restart policy, its restart does not count towards backoffLimit, and with restartScope Job
// it starts a new attempt of all (operator/policy). So the pods are deleted, each under the
// condition that it is still the one that was seen.
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

// kFailed when a job has ended, is suspended, has no such replica or none that could be restarted,
// or the server refuses.
int Restart(const RestartOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
