#include "operator/policy/facts/gone_pods.h"

namespace tfjob::policy {

std::set<std::string_view> CountedAndGone(const api::TFJobStatus& status,
                                          const Snapshot& snapshot) {
  std::set<std::string_view> gone;
  for (const auto& [type, replica] : status.replica_statuses) {
    gone.insert(replica.replacing.begin(), replica.replacing.end());
  }
  if (gone.empty()) return gone;
  for (const auto& pod : snapshot.pods) gone.erase(pod->metadata.uid);
  for (const auto& pod : snapshot.departed) gone.erase(pod->metadata.uid);
  return gone;
}

}  // namespace tfjob::policy
