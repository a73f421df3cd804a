// The restart policy's word on a pod in phase Failed.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"

namespace tfjob::policy {

enum class FailureKind {
  kPermanent,  // the policy does not restart it
  kRetryable,  // restarted; counts towards backoffLimit
  kDisrupted,  // restarted; the cluster's doing, counts nothing
};

// Never: permanent, whatever the reason. A disruption restarts under every other policy. ExitCode:
// codes below 128 are permanent, 128 and above (signals; 138 is the user's own choice) and an
// unknown code are retryable. Always and OnFailure: retryable.
FailureKind JudgeFailure(const objects::Pod& pod, api::RestartPolicy policy);

}  // namespace tfjob::policy
