#include "operator/control/admitted_policy.h"

#include <nlohmann/json.hpp>

#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "operator/policy/facts/network_policy.h"

namespace tfjob::control {

std::string DifferenceOfPolicy(const api::TFJob& job, const client::Object& returned) {
  const auto policy = client::As<objects::CustomResource>(returned);
  if (policy == nullptr) return "spec";
  const Json* spec = JsonField(*policy->object)["spec"].value();
  return policy::NetworkPolicyDifference(
      spec == nullptr ? Json() : *spec,
      policy::NetworkPolicyRules(job.metadata.name, policy::WantedNetworkPolicy(job)));
}

std::string ChangedByWebhookMessage(const std::string& policy, const std::string& difference) {
  return StrCat("the server stored other rules than it was sent: ", difference,
                " of NetworkPolicy ", policy,
                " was changed, such as by an admission webhook, so no pods are created: exclude "
                "the policies with the label training.kubeflow.org/operator-name from it");
}

}  // namespace tfjob::control
