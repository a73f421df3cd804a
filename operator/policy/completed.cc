#include "operator/policy/completed.h"

namespace tfjob::policy {

std::vector<const objects::Pod*> RememberCompleted(const Replicas& replicas,
                                                   api::TFJobStatus& status) {
  std::vector<const objects::Pod*> pods;
  for (const ReplicaGroup& group : replicas.groups) {
    if (group.Count(ReplicaState::kCompleted) == 0) continue;
    std::string& text = status.replica_statuses[group.type].completed_indexes;
    const api::IndexSet known = api::IndexSet::Parse(text).value_or(api::IndexSet());
    api::IndexSet completed = known;
    for (int32_t i = 0; i < group.size(); ++i) {
      const Replica& replica = group.replicas[i];
      if (replica.state != ReplicaState::kCompleted || known.Contains(i)) continue;
      completed.Insert(i);
      pods.push_back(replica.pod);
    }
    if (!(completed == known)) text = completed.ToString();
  }
  return pods;
}

}  // namespace tfjob::policy
