// Describes a job's NetworkPolicy, which lets only the job's own pods reach the ports of its tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/tfjob.h"
#include "runtime/base/json.h"

namespace tfjob::policy {

// Selects the jobs that get a NetworkPolicy.
enum class NetworkPolicies {
  kNone,       // no job; a job that requests a policy waits
  kAnnotated,  // jobs with the annotation tfjob.dev/network-policy: "true"
  kAll,        // all jobs except those with the annotation "false"
  kIgnored,    // no job, regardless of its annotation: there is no network to protect
};
// Returns whether any job can get a NetworkPolicy.
bool LetsJobsHaveOne(NetworkPolicies setting);
// Parses the operator's setting: "none", "annotated" or "all".
std::optional<NetworkPolicies> ParseNetworkPolicies(std::string_view word);

// Returns whether the job should have a NetworkPolicy. An annotation with any value other than
// "true" or "false" counts as absent; api::Validate reports it.
bool WantsNetworkPolicy(const api::TFJob& job, NetworkPolicies setting);
// Returns why the job cannot get the NetworkPolicy that it requests; "" if it can get it or
// requests none.
std::string NetworkPolicyObstacle(const api::TFJob& job, NetworkPolicies setting);

struct NetworkPolicySpec {
  // The ports that only the job's own pods may reach, from 1 to 65535, sorted and without
  // duplicates.
  std::vector<int32_t> ports;

  bool operator==(const NetworkPolicySpec&) const = default;
};

// Returns the policy that the job's pods need. Its ports are those that the tasks use to
// communicate: the tfjob-ports of all replica types that have replicas. Omits ports that the API
// server would reject. Other ports of a template, such as those for metrics, remain open.
NetworkPolicySpec WantedNetworkPolicy(const api::TFJob& job);

// Returns the `spec` of the NetworkPolicy (networking.k8s.io/v1). It selects the job's pods. The
// pods may reach each other on all ports, and everyone else may reach them on all ports except
// NetworkPolicySpec::ports. Network policies cannot exclude a port, so the policy allows the ranges
// between the excluded ports, for each protocol. All fields that have a default are set, so that
// the server stores exactly this spec.
Json NetworkPolicyRules(const std::string& job_name, const NetworkPolicySpec& spec);

// Returns where the `spec` of an existing policy differs in meaning from `rules`, as a path such as
// "spec.ingress[1].ports[0].endPort"; "" if it does not differ. All fields of `rules` must be
// present. Ignores fields that servers and webhooks add, unless they select pods, peers or ports.
std::string NetworkPolicyDifference(const Json& spec, const Json& rules);

}  // namespace tfjob::policy
