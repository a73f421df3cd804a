// Applies the restart policy to a pod in phase Failed.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"

namespace tfjob::policy {

enum class FailureKind {
  kPermanent,  // the policy does not restart it
  kRetryable,  // restarted; counts towards backoffLimit
  kDisrupted,  // restarted; caused by the cluster, not counted
};

// Never: permanent, whatever the reason. Every other policy restarts after a disruption. ExitCode:
// codes below 128 are permanent; 128 and above (signals; 138 is the user's own choice) and an
// unknown code are retryable. Always and OnFailure: retryable.
FailureKind JudgeFailure(const objects::Pod& pod, api::RestartPolicy policy);

}  // namespace tfjob::policy
