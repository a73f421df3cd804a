// Builds a job's NetworkPolicy (networking.k8s.io/v1).
#pragma once

#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "operator/policy/facts/network_policy.h"
#include "runtime/base/json.h"

namespace tfjob::render {

// Returns the object to create, with the rules of policy::NetworkPolicyRules.
Json BuildNetworkPolicy(const api::TFJob& job, const policy::NetworkPolicySpec& spec);

// Returns a merge patch that sets the existing policy's rules and removes all other fields from its
// spec. The UID of `existing` is a precondition.
Json PatchNetworkPolicy(const objects::CustomResource& existing, const std::string& job_name,
                        const policy::NetworkPolicySpec& spec);

}  // namespace tfjob::render
