// Describes what each restart policy means, as one row of a table. Code that depends on the policy
// asks its row, so that a further policy is a further row.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::policy {

struct RestartBehavior {
  api::RestartPolicy policy = api::RestartPolicy::kNever;
  // A replica that fails, is disrupted or vanishes is restarted, and the restart is reported and,
  // after a failure, counted. Otherwise every failure is permanent, and a pod that was deleted is
  // created again without being a restart.
  bool restarts_replicas = false;
  // The exit code decides whether a failure is permanent (pod_end.h). The job's failure then names
  // the code as its cause.
  bool exit_code_decides = false;
  // Restarts of containers within a pod count towards the job's restarts.
  bool counts_container_restarts = false;
  // A replica whose container exited with 0 has done its work and is not started again.
  bool completes_for_good = false;
  // spec.restartPolicy of the pod: what the kubelet does.
  api::RestartPolicy pod_policy = api::RestartPolicy::kNever;
};

const RestartBehavior& BehaviorOf(api::RestartPolicy policy);

}  // namespace tfjob::policy
