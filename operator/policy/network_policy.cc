#include "operator/policy/network_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/reasons.h"
#include "operator/objects/custom_resource.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/reported_causes.h"
#include "operator/policy/rules/recreation_delay.h"

namespace tfjob::policy {
namespace {

bool Wants(const Draft& draft) {
  return WantsNetworkPolicy(draft.job, draft.options.network_policies);
}

// Returns the policy; nullptr if there is none or it is being deleted.
const objects::CustomResource* FindPolicy(const Draft& draft) {
  const auto& policy = draft.snapshot.network_policy;
  return policy == nullptr || policy->metadata.terminating() ? nullptr : policy.get();
}

NetworkPolicyRef RefTo(const objects::CustomResource& policy) {
  return {policy.metadata.name, policy.metadata.uid};
}

// The number of changes to a policy, each made less than restart_delay_reset after the previous
// one, after which the changes are reported.
constexpr int32_t kManyChanges = 4;

std::string DifferenceFrom(const objects::CustomResource& policy, const Json& rules) {
  const Json* spec = JsonField(*policy.object)["spec"].value();
  return NetworkPolicyDifference(spec == nullptr ? Json() : *spec, rules);
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

// Reports that something else, such as a webhook, keeps changing the policy. The time in the cause
// distinguishes this series of changes from later ones.
void ReportManyChanges(const std::string& name, const std::string& difference, Draft& draft) {
  const History* history = draft.history();
  if (history == nullptr || history->policy_changes < kManyChanges) return;
  draft.AddEvent(JobEvent{objects::EventType::kWarning, api::kReasonFailedChangeNetworkPolicy,
                          api::NetworkPolicyKeepsChangingMessage(name, difference),
                          StrCat(kPolicyChangesCause, FormatTime(history->policy_changes_since)),
                          true});
}

// Returns how long the next change to the policy must wait because of earlier changes.
Duration TimeToChange(const Draft& draft) {
  const History* history = draft.history();
  if (history == nullptr || history->policy_changes == 0) return Duration::zero();
  const Duration left = history->policy_changed_at +
                        RecreationDelay(history->policy_changes, draft.options) -
                        draft.snapshot.steady_now;
  return std::max(left, Duration::zero());
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
    return;
  }
  const std::string difference =
      DifferenceFrom(*policy, NetworkPolicyRules(draft.job.metadata.name, wanted));
  if (difference.empty()) return;
  ReportManyChanges(policy->metadata.name, difference, draft);
  const Duration left = TimeToChange(draft);
  if (left > Duration::zero()) {
    draft.policy_changes_in = left;
    return draft.RequeueAfter(left);
  }
  draft.verdict.change_network_policy = NetworkPolicyChange{RefTo(*policy), std::move(wanted)};
}

void DropUnusedNetworkPolicy(Draft& draft) {
  if (!Wants(draft) || draft.snapshot.pods.empty()) DropPolicy(draft);
}

}  // namespace tfjob::policy
