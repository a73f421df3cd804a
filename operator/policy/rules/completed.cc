#include "operator/policy/rules/completed.h"

#include "operator/api/replicas.h"
#include "operator/policy/facts/pod_end.h"

namespace tfjob::policy {
namespace {

using Pods = std::vector<const objects::Pod*>;

api::IndexSet Known(const api::TFJobStatus& status, api::ReplicaType type) {
  const auto replica = status.replica_statuses.find(type);
  if (replica == status.replica_statuses.end()) return {};
  return api::IndexSet::Parse(replica->second.completed_indexes).value_or(api::IndexSet());
}

void RememberGroup(const ReplicaGroup& group, api::TFJobStatus& status, Pods& pods) {
  if (group.Count(ReplicaState::kCompleted) == 0) return;
  const api::IndexSet known = Known(status, group.type);
  api::IndexSet completed = known;
  for (int32_t i = 0; i < group.size(); ++i) {
    const Replica& replica = group.replicas[i];
    if (replica.state != ReplicaState::kCompleted || known.Contains(i)) continue;
    completed.Insert(i);
    pods.push_back(replica.pod);
  }
  if (completed == known) return;
  status.replica_statuses[group.type].completed_indexes = completed.ToString();
}

// Records the index of a surplus pod, which is beyond the slots of its type, if the pod is
// completed.
void RememberSurplus(const api::TFJob& job, const objects::Pod& pod, api::TFJobStatus& status,
                     Pods& pods) {
  const std::optional<Slot> slot = SlotOfName(job.metadata.name, pod.metadata.name);
  const auto spec = slot ? job.spec.replicas.find(slot->type) : job.spec.replicas.end();
  if (spec == job.spec.replicas.end() || AttemptOf(pod) < status.attempt ||
      JudgeEnd(pod, api::EffectiveRestartPolicy(spec->second)) != PodEnd::kDone) {
    return;
  }
  api::IndexSet completed = Known(status, slot->type);
  if (completed.Contains(slot->index)) return;
  completed.Insert(slot->index);
  status.replica_statuses[slot->type].completed_indexes = completed.ToString();
  pods.push_back(&pod);
}

}  // namespace

Pods RememberCompleted(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status) {
  Pods pods;
  for (const ReplicaGroup& group : replicas.groups) RememberGroup(group, status, pods);
  for (const objects::Pod* pod : replicas.surplus) RememberSurplus(job, *pod, status, pods);
  return pods;
}

}  // namespace tfjob::policy
