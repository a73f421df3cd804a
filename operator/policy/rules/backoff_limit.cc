#include "operator/policy/rules/backoff_limit.h"

#include <algorithm>

#include "operator/policy/rules/counted_restarts.h"

namespace tfjob::policy {
namespace {

// Contains the counts that the restarts due in this reconcile would add to those in the status.
struct Due {
  int64_t recreations = 0;
  int64_t container_restarts = 0;
};

Due DueOf(const Replicas& replicas, api::RestartScope scope) {
  Due due;
  for (const ReplicaGroup& group : replicas.groups) {
    for (const Replica& replica : group.replicas) {
      const bool failed = replica.state == ReplicaState::kRetryable;
      if (!failed && replica.state != ReplicaState::kDisrupted) continue;
      due.recreations += failed ? 1 : 0;
      due.container_restarts += replica.pod->restart_count();
    }
  }
  if (scope == api::RestartScope::kJob) due.recreations = std::min<int64_t>(due.recreations, 1);
  return due;
}

}  // namespace

bool ExceedsBackoffLimit(const api::TFJob& job, const api::TFJobStatus& status,
                         const Replicas& replicas) {
  if (!job.spec.run_policy.backoff_limit) return false;
  const int64_t limit = *job.spec.run_policy.backoff_limit;
  const Due due = DueOf(replicas, job.spec.run_policy.restart_scope);
  // Use the count that the status will contain after this reconcile, so that the next reconcile
  // makes the same decision.
  const int64_t used = RestartsInStatus(status) + due.recreations + due.container_restarts;
  const int64_t living = RestartsOfLivingPods(replicas);
  if (living > 0 && used + living >= std::max<int64_t>(limit, 1)) return true;
  return due.recreations > 0 && used > limit;
}

}  // namespace tfjob::policy
