#include "operator/policy/rules/permanent_failure.h"

#include <algorithm>

#include "operator/api/reasons.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/facts/restart_policy.h"

namespace tfjob::policy {
namespace {

// Returns a sentence such as " Pod mnist-worker-1: Evicted: the node was low on memory" about the
// first failed pod that was disrupted; "" if no failed pod was disrupted.
std::string DisruptionSentence(const ReplicaGroup& group) {
  for (const Replica& replica : group.replicas) {
    if (replica.state != ReplicaState::kFailed) continue;
    if (const std::optional<std::string> disruption = Disruption(*replica.pod)) {
      return StrCat(" Pod ", replica.pod->metadata.name, ": ", *disruption);
    }
  }
  return "";
}

}  // namespace

bool ToleratesFailure(const api::TFJob& job, api::ReplicaType type) {
  return job.spec.enable_dynamic_worker && type == api::ReplicaType::kWorker;
}

std::optional<PermanentFailure> FindPermanentFailure(const api::TFJob& job,
                                                     const Replicas& replicas) {
  for (const ReplicaGroup& group : replicas.groups) {
    const int32_t failed = group.Count(ReplicaState::kFailed);
    if (failed == 0 || ToleratesFailure(job, group.type)) continue;
    if (BehaviorOf(group.policy).exit_code_decides) {
      return PermanentFailure{api::PermanentFailureMessage(job, group.type),
                              objects::EventType::kWarning};
    }
    return PermanentFailure{api::FailedReplicasMessage(job, group.type, failed) +
                            DisruptionSentence(group)};
  }
  return std::nullopt;
}

}  // namespace tfjob::policy
