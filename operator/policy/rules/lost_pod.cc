#include "operator/policy/rules/lost_pod.h"

#include "operator/api/names.h"

namespace tfjob::policy {

std::optional<Duration> TimeToLost(const objects::Pod& pod,
                                   const std::optional<std::set<std::string>>& lost_nodes, Time now,
                                   const DecisionOptions& options) {
  if (!lost_nodes || !pod.metadata.terminating() || !lost_nodes->contains(pod.node_name)) {
    return std::nullopt;
  }
  // The grace period ends at deletionTimestamp.
  return *pod.metadata.deletion_timestamp + options.lost_pod_after - now;
}

bool ForcesDeletion(const api::TFJob& job) {
  const auto annotation = job.metadata.annotations.find(api::kForceDeleteAnnotation);
  return annotation != job.metadata.annotations.end() && annotation->second == "true";
}

}  // namespace tfjob::policy
