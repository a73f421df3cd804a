#include "operator/policy/rules/counted_restarts.h"

#include <algorithm>
#include <limits>

#include "operator/policy/facts/gone_pods.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/restart_policy.h"

namespace tfjob::policy {
namespace {

int32_t SaturatingAdd(int32_t a, int64_t b) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(int64_t{a} + b, 0, std::numeric_limits<int32_t>::max()));
}

// Returns how long the counted pod has been known to be gone.
Duration GoneFor(std::string_view uid, const Snapshot& snapshot, const DecisionOptions& options) {
  if (snapshot.history == nullptr) return options.keep_counted;
  const auto since = snapshot.history->counted_and_gone.find(uid);
  return since == snapshot.history->counted_and_gone.end() ? Duration::zero()
                                                           : snapshot.steady_now - since->second;
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

void ForgetGonePods(const Snapshot& snapshot, const DecisionOptions& options,
                    api::TFJobStatus& status) {
  const std::set<std::string_view> gone = CountedAndGone(status, snapshot);
  std::vector<std::pair<Duration, std::string_view>> latest_first;
  for (const std::string_view uid : gone) {
    latest_first.emplace_back(GoneFor(uid, snapshot, options), uid);
  }
  // Order pods that disappeared at the same time by UID, so that every call forgets the same pods.
  std::ranges::sort(latest_first, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::set<std::string> forgotten;
  for (size_t i = 0; i < latest_first.size(); ++i) {
    const auto& [time, uid] = latest_first[i];
    if (i >= kMaxGonePods || time >= options.keep_counted) forgotten.emplace(uid);
  }
  for (auto& [type, replica] : status.replica_statuses) {
    std::erase_if(replica.replacing,
                  [&](const std::string& uid) { return forgotten.contains(uid); });
  }
}

}  // namespace tfjob::policy
