#include "operator/policy/rules/restarts.h"

#include <algorithm>

#include "operator/api/replicas.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/facts/restart_policy.h"
#include "operator/policy/rules/counted_restarts.h"

namespace tfjob::policy {
namespace {

bool Vanished(const api::TFJob& job, const History* history, const Slot& slot,
              const api::TFJobStatus& status) {
  const IndexHistory* index = history == nullptr ? nullptr : history->Find(slot);
  return index != nullptr && index->vanished && index->attempt == status.attempt &&
         !history->BlocksPod(job, slot);
}

// Returns the last state of the pod that vanished from the slot; nullptr if the snapshot does not
// contain it.
const objects::Pod* LastState(const Snapshot& snapshot, const Slot& slot) {
  const std::string& uid = snapshot.history->Find(slot)->uid;
  for (const auto& pod : snapshot.departed) {
    if (pod->metadata.uid == uid) return pod.get();
  }
  return nullptr;
}

void CountContainersOf(const objects::Pod& pod, api::ReplicaType type, api::TFJobStatus& status) {
  if (pod.restart_count() > 0 && !IsCounted(pod, type, status)) CountPod(pod, type, 0, status);
}

}  // namespace

std::vector<Restarted> FindRestarts(const api::TFJob& job, const Replicas& replicas,
                                    const Snapshot& snapshot, const api::TFJobStatus& status) {
  std::vector<Restarted> restarts;
  for (const ReplicaGroup& group : replicas.groups) {
    if (!BehaviorOf(group.policy).restarts_replicas) continue;
    for (int32_t i = 0; i < group.size(); ++i) {
      const Replica& replica = group.replicas[i];
      const Slot slot{group.type, i};
      if (replica.state == ReplicaState::kRetryable) {
        restarts.push_back({slot, replica.pod, false});
      } else if (replica.state == ReplicaState::kDisrupted) {
        restarts.push_back({slot, replica.pod, true});
      } else if (replica.state == ReplicaState::kMissing &&
                 Vanished(job, snapshot.history, slot, status)) {
        restarts.push_back({slot, nullptr, true, LastState(snapshot, slot)});
      }
    }
  }
  return restarts;
}

void CountRestarts(const std::vector<Restarted>& restarts, api::TFJobStatus& status) {
  for (const Restarted& restart : restarts) {
    if (restart.departed != nullptr)
      CountContainersOf(*restart.departed, restart.slot.type, status);
    if (restart.pod == nullptr) continue;
    CountPod(*restart.pod, restart.slot.type, restart.disrupted ? 0 : 1, status);
  }
}

void StartAttempt(const std::vector<Restarted>& restarts, const Replicas& replicas,
                  api::TFJobStatus& status) {
  CountContainerRestarts(replicas, status);
  for (const Restarted& restart : restarts) {
    if (restart.departed != nullptr)
      CountContainersOf(*restart.departed, restart.slot.type, status);
  }
  const auto failed = std::find_if(restarts.begin(), restarts.end(),
                                   [](const Restarted& restart) { return !restart.disrupted; });
  if (failed != restarts.end()) ++status.replica_statuses[failed->slot.type].restarts;
  // From now on, the attempt number of a pod shows whether the pod has been counted, so the UIDs
  // are no longer needed.
  for (auto& [type, replica] : status.replica_statuses) replica.replacing.clear();
  ++status.attempt;
  ForgetCompleted(status);
}

void CountContainerRestarts(const Replicas& replicas, api::TFJobStatus& status) {
  for (const ReplicaGroup& group : replicas.groups) {
    if (!BehaviorOf(group.policy).counts_container_restarts) continue;
    for (const Replica& replica : group.replicas) {
      // Pods of earlier attempts were counted when this attempt was started.
      if (replica.pod == nullptr || AttemptOf(*replica.pod) < status.attempt) continue;
      CountContainersOf(*replica.pod, group.type, status);
    }
  }
}

void CountSurplusPods(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status) {
  for (const objects::Pod* pod : replicas.surplus) {
    const std::optional<Slot> slot = SlotOfName(job.metadata.name, pod->metadata.name);
    const auto spec = slot ? job.spec.replicas.find(slot->type) : job.spec.replicas.end();
    if (spec == job.spec.replicas.end() ||
        !BehaviorOf(api::EffectiveRestartPolicy(spec->second)).counts_container_restarts ||
        AttemptOf(*pod) < status.attempt) {
      continue;
    }
    if (!IsCounted(*pod, slot->type, status)) CountPod(*pod, slot->type, 0, status);
  }
}

void ForgetCompleted(api::TFJobStatus& status) {
  for (const api::ReplicaType type :
       {api::ReplicaType::kChief, api::ReplicaType::kMaster, api::ReplicaType::kWorker}) {
    const auto replica = status.replica_statuses.find(type);
    if (replica != status.replica_statuses.end()) replica->second.completed_indexes.clear();
  }
}

}  // namespace tfjob::policy
