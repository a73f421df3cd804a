#include "operator/policy/facts/history.h"

#include "operator/api/conditions.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {
namespace {

void RecordPod(const Replica& replica, Time now, const DecisionOptions& options,
               IndexHistory& index) {
  const objects::Pod& pod = *replica.pod;
  if (index.uid != pod.metadata.uid) {
    if (!index.uid.empty()) ++index.recreations;
    index.uid = pod.metadata.uid;
    index.attempt = AttemptOf(pod);
    index.lost_at = Time();
  }
  if (RunTime(pod, now) >= options.restart_delay_reset) index.recreations = 0;
  index.vanished = false;
  index.alive = replica.alive();
  if (index.alive) {
    index.lost_at = Time();
  } else if (index.lost_at == Time()) {
    index.lost_at = now;
  }
}

void RecordAbsence(Time now, IndexHistory& index) {
  if (index.uid.empty()) return;
  if (index.lost_at == Time()) index.lost_at = now;
  if (index.alive) index.vanished = true;
  index.alive = false;
}

}  // namespace

const IndexHistory* History::Find(const Slot& slot) const {
  const auto type = indexes.find(slot.type);
  if (type == indexes.end() || static_cast<size_t>(slot.index) >= type->second.size()) {
    return nullptr;
  }
  const IndexHistory& index = type->second[slot.index];
  return index.uid.empty() ? nullptr : &index;
}

bool History::BlocksPod(const api::TFJob& job, const Slot& slot) const {
  return !blocked_pods.empty() &&
         blocked_pods.contains(api::ReplicaName(job.metadata.name, slot.type, slot.index));
}

void Remember(const api::TFJob& job, const Snapshot& snapshot, Time now,
              const DecisionOptions& options, History& history) {
  if (job.spec.run_policy.suspend || api::IsFinished(job.status) ||
      api::IsTrue(job.status, api::ConditionType::kSuspended)) {
    history.indexes.clear();
    return;
  }
  const Replicas replicas = Arrange(job, job.status, snapshot);
  std::erase_if(history.indexes,
                [&](const auto& entry) { return replicas.Find(entry.first) == nullptr; });
  for (const ReplicaGroup& group : replicas.groups) {
    if (group.size() == 0) continue;
    std::vector<IndexHistory>& indexes = history.indexes[group.type];
    indexes.resize(group.replicas.size());
    for (int32_t i = 0; i < group.size(); ++i) {
      const Replica& replica = group.replicas[i];
      if (replica.pod != nullptr) {
        RecordPod(replica, now, options, indexes[i]);
      } else {
        RecordAbsence(now, indexes[i]);
      }
    }
  }
}

}  // namespace tfjob::policy
