#include "operator/policy/rules/counted_restarts.h"

#include <algorithm>
#include <limits>
#include <set>

#include "operator/policy/facts/restart_policy.h"

namespace tfjob::policy {
namespace {

int32_t SaturatingAdd(int32_t a, int64_t b) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(int64_t{a} + b, 0, std::numeric_limits<int32_t>::max()));
}

}  // namespace

int64_t RestartsInStatus(const api::TFJobStatus& status) {
  int64_t restarts = 0;
  for (const auto& [type, replica] : status.replica_statuses) restarts += replica.restarts;
  return restarts;
}

int64_t RestartsOfLivingPods(const Replicas& replicas) {
  int64_t restarts = 0;
  for (const ReplicaGroup& group : replicas.groups) {
    if (!BehaviorOf(group.policy).counts_container_restarts) continue;
    for (const Replica& replica : group.replicas) {
      if (replica.state == ReplicaState::kActive) restarts += replica.pod->restart_count();
    }
  }
  return restarts;
}

void CountPod(const objects::Pod& pod, api::ReplicaType type, int32_t recreations,
              api::TFJobStatus& status) {
  api::ReplicaStatus& replica = status.replica_statuses[type];
  replica.restarts = SaturatingAdd(replica.restarts, int64_t{recreations} + pod.restart_count());
  std::vector<std::string>& noted = replica.replacing;
  noted.insert(std::upper_bound(noted.begin(), noted.end(), pod.metadata.uid), pod.metadata.uid);
}

bool IsCounted(const objects::Pod& pod, api::ReplicaType type, const api::TFJobStatus& status) {
  const auto replica = status.replica_statuses.find(type);
  return replica != status.replica_statuses.end() &&
         std::binary_search(replica->second.replacing.begin(), replica->second.replacing.end(),
                            pod.metadata.uid);
}

void ForgetGonePods(const Snapshot& snapshot, api::TFJobStatus& status) {
  const bool any = std::any_of(status.replica_statuses.begin(), status.replica_statuses.end(),
                               [](const auto& entry) { return !entry.second.replacing.empty(); });
  if (!any) return;
  std::set<std::string_view> present;
  for (const auto& pod : snapshot.pods) present.insert(pod->metadata.uid);
  for (const auto& pod : snapshot.departed) present.insert(pod->metadata.uid);
  for (auto& [type, replica] : status.replica_statuses) {
    std::erase_if(replica.replacing,
                  [&](const std::string& uid) { return !present.contains(uid); });
  }
}

}  // namespace tfjob::policy
