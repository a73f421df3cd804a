#include "operator/policy/rules/running.h"

#include <algorithm>

#include "operator/policy/facts/history.h"

namespace tfjob::policy {
namespace {

bool AnyActive(const ReplicaGroup& group) {
  return group.Count(ReplicaState::kActive) > 0;
}

bool IsFilled(const Replica& replica) {
  return replica.alive() || replica.state == ReplicaState::kCompleted ||
         replica.state == ReplicaState::kSucceeded || replica.state == ReplicaState::kFailed;
}

}  // namespace

bool DriverRuns(const Replicas& replicas) {
  for (const api::ReplicaType driver :
       {api::ReplicaType::kChief, api::ReplicaType::kMaster, api::ReplicaType::kWorker}) {
    if (const ReplicaGroup* group = replicas.Find(driver)) return AnyActive(*group);
  }
  return std::any_of(replicas.groups.begin(), replicas.groups.end(), AnyActive);
}

bool ReplacementsExist(const api::TFJob& job, const Replicas& replicas, const History* history) {
  for (const ReplicaGroup& group : replicas.groups) {
    for (int32_t i = 0; i < group.size(); ++i) {
      if (IsFilled(group.replicas[i])) continue;
      if (history == nullptr || !history->BlocksPod(job, {group.type, i})) return false;
    }
  }
  return true;
}

}  // namespace tfjob::policy
