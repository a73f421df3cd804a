#include "operator/policy/facts/restart.h"

#include "operator/policy/facts/pod_end.h"

namespace tfjob::policy {

FailureKind JudgeFailure(const objects::Pod& pod, api::RestartPolicy policy) {
  constexpr int32_t kFirstRetryable = 128;
  if (policy == api::RestartPolicy::kNever) return FailureKind::kPermanent;
  if (Disruption(pod)) return FailureKind::kDisrupted;
  if (policy == api::RestartPolicy::kExitCode &&
      ExitCode(pod).value_or(kFirstRetryable) < kFirstRetryable) {
    return FailureKind::kPermanent;
  }
  return FailureKind::kRetryable;
}

}  // namespace tfjob::policy
