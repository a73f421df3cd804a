#include "operator/policy/network_policy.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/reasons.h"

namespace tfjob::policy {
namespace {

bool Wants(const Draft& draft) {
  return WantsNetworkPolicy(draft.job, draft.options.network_policies);
}

// Returns the policy, unless it is being deleted.
const objects::CustomResource* FindPolicy(const Draft& draft) {
  const auto& policy = draft.snapshot.network_policy;
  return policy == nullptr || policy->metadata.terminating() ? nullptr : policy.get();
}

NetworkPolicyRef RefTo(const objects::CustomResource& policy) {
  return {policy.metadata.name, policy.metadata.uid};
}

bool HasRules(const objects::CustomResource& policy, const Json& rules) {
  const Json* spec = JsonField(*policy.object)["spec"].value();
  return spec != nullptr && *spec == rules;
}

void DropPolicy(Draft& draft) {
  const objects::CustomResource* policy = FindPolicy(draft);
  if (policy != nullptr) draft.verdict.delete_network_policy = RefTo(*policy);
}

void ReportObstacle(Draft& draft) {
  const std::string obstacle = NetworkPolicyObstacle(draft.job, draft.options.network_policies);
  draft.AddEvent(JobEvent{objects::EventType::kWarning, api::kReasonFailedCreateNetworkPolicy,
                          api::FailedCreateMessage(obstacle), "network-policy", true});
}

}  // namespace

void HoldBackUnprotected(Draft& draft) {
  std::string obstacle = NetworkPolicyObstacle(draft.job, draft.options.network_policies);
  if (obstacle.empty()) return;
  draft.lacks_network_policy = true;
  draft.waits_for_queue = true;
  if (draft.obstacle.empty()) draft.obstacle = std::move(obstacle);
}

void WantNetworkPolicy(Draft& draft) {
  if (draft.lacks_network_policy) ReportObstacle(draft);
  if (!Wants(draft)) return DropPolicy(draft);
  NetworkPolicySpec wanted = WantedNetworkPolicy(draft.job);
  const objects::CustomResource* policy = FindPolicy(draft);
  if (policy == nullptr) {
    if (!draft.waits_for_queue) draft.verdict.create_network_policy = std::move(wanted);
  } else if (!HasRules(*policy, NetworkPolicyRules(draft.job.metadata.name, wanted))) {
    draft.verdict.change_network_policy = NetworkPolicyChange{RefTo(*policy), std::move(wanted)};
  }
}

void DropUnusedNetworkPolicy(Draft& draft) {
  if (!Wants(draft) || draft.snapshot.pods.empty()) DropPolicy(draft);
}

}  // namespace tfjob::policy
