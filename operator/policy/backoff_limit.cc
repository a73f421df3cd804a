#include "operator/policy/backoff_limit.h"

#include <algorithm>

#include "operator/policy/restart_count.h"

namespace tfjob::policy {
namespace {

struct Due {
  int64_t recreations = 0;
  int64_t container_restarts = 0;  // of the pods to be recreated
};

Due DueOf(const Replicas& replicas) {
  Due due;
  for (const ReplicaGroup& group : replicas.groups) {
    for (const Replica& replica : group.replicas) {
      if (replica.state != ReplicaState::kRetryable) continue;
      ++due.recreations;
      due.container_restarts += replica.pod->restart_count();
    }
  }
  return due;
}

}  // namespace

bool ExceedsBackoffLimit(const api::TFJob& job, const api::TFJobStatus& status,
                         const Replicas& replicas) {
  if (!job.spec.run_policy.backoff_limit) return false;
  const int64_t limit = *job.spec.run_policy.backoff_limit;
  const int64_t used = RestartsInStatus(status);
  const int64_t living = RestartsOfLivingPods(replicas);
  if (living > 0 && used + living >= std::max<int64_t>(limit, 1)) return true;
  Due due = DueOf(replicas);
  if (due.recreations == 0) return false;
  if (job.spec.run_policy.restart_scope == api::RestartScope::kJob) due.recreations = 1;
  return used + due.container_restarts + due.recreations > limit;
}

}  // namespace tfjob::policy
