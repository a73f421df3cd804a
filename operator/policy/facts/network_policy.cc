#include "operator/policy/facts/network_policy.h"

#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/names.h"
#include "operator/api/reasons.h"
#include "operator/api/replicas.h"

namespace tfjob::policy {
namespace {

constexpr int32_t kLastPort = 65535;

// Returns the value of the job's annotation; nullopt if the job has none or it is invalid.
std::optional<bool> AnnotatedWish(const api::TFJob& job) {
  const auto annotation = job.metadata.annotations.find(api::kNetworkPolicyAnnotation);
  if (annotation == job.metadata.annotations.end()) return std::nullopt;
  if (annotation->second == "true") return true;
  if (annotation->second == "false") return false;
  return std::nullopt;
}

// Returns the rule's ports: the ranges between the closed ports, for every protocol.
Json OpenPorts(const std::vector<int32_t>& closed) {
  Json ports = Json::array();
  for (const char* protocol : {"TCP", "UDP", "SCTP"}) {
    int32_t first = 1;
    const auto open_up_to = [&](int32_t last) {
      if (first > last) return;
      ports.push_back({{"protocol", protocol}, {"port", first}, {"endPort", last}});
    };
    for (const int32_t port : closed) {
      open_up_to(port - 1);
      first = port + 1;
    }
    open_up_to(kLastPort);
  }
  return ports;
}

}  // namespace

std::optional<NetworkPolicies> ParseNetworkPolicies(std::string_view word) {
  if (word == "none") return NetworkPolicies::kNone;
  if (word == "annotated") return NetworkPolicies::kAnnotated;
  if (word == "all") return NetworkPolicies::kAll;
  return std::nullopt;
}

bool WantsNetworkPolicy(const api::TFJob& job, NetworkPolicies setting) {
  switch (setting) {
    case NetworkPolicies::kNone:
    case NetworkPolicies::kIgnored:
      return false;
    case NetworkPolicies::kAnnotated:
      return AnnotatedWish(job).value_or(false);
    case NetworkPolicies::kAll:
      return AnnotatedWish(job).value_or(true);
  }
  return false;
}

std::string NetworkPolicyObstacle(const api::TFJob& job, NetworkPolicies setting) {
  const bool asks = setting == NetworkPolicies::kNone && AnnotatedWish(job).value_or(false);
  return asks ? api::NoNetworkPoliciesMessage() : "";
}

NetworkPolicySpec WantedNetworkPolicy(const api::TFJob& job) {
  std::set<int32_t> ports;
  for (const auto& [type, spec] : job.spec.replicas) {
    const int32_t port = api::TFJobPort(job, type);
    if (api::Replicas(job, type) > 0 && 1 <= port && port <= kLastPort) ports.insert(port);
  }
  return {{ports.begin(), ports.end()}};
}

Json NetworkPolicyRules(const std::string& job_name, const NetworkPolicySpec& spec) {
  const Json pods = {{"matchLabels", api::JobSelector(job_name)}};
  const Json among_themselves = {{"from", Json::array({{{"podSelector", pods}}})}};
  const Json everybody = {{"ports", OpenPorts(spec.ports)}};
  return {{"podSelector", pods},
          {"policyTypes", Json::array({"Ingress"})},
          {"ingress", Json::array({among_themselves, everybody})}};
}

}  // namespace tfjob::policy
