// Describes the effects of each restart policy. Each policy is a row of a table. Code that depends
// on the policy looks up its row, so a new policy needs only a new row.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::policy {

struct RestartBehavior {
  api::RestartPolicy policy = api::RestartPolicy::kNever;
  // If true, a replica that fails, is disrupted or vanishes is restarted. The restart is reported
  // and, after a failure, counted. If false, every failure is permanent, and a deleted pod is
  // recreated without counting as a restart.
  bool restarts_replicas = false;
  // If true, the exit code decides whether a failure is permanent (pod_end.h). A permanent failure
  // then fails the job with api::PermanentFailureMessage and a Warning event.
  bool exit_code_decides = false;
  // If true, restarts of containers within a pod count towards the job's restarts.
  bool counts_container_restarts = false;
  // If true, a replica whose container has exited with 0 has done its work and is not restarted.
  bool completes_for_good = false;
  // The spec.restartPolicy of the pods, which the kubelet follows.
  api::RestartPolicy pod_policy = api::RestartPolicy::kNever;
};

const RestartBehavior& BehaviorOf(api::RestartPolicy policy);

}  // namespace tfjob::policy
