#include "operator/policy/facts/network_policy.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/names.h"
#include "operator/api/reasons.h"
#include "operator/api/replicas.h"

namespace tfjob::policy {
namespace {

constexpr int32_t kLastPort = 65535;

// Returns what the job's annotation requests; nullopt if the job has no such annotation or its
// value is invalid.
std::optional<bool> AnnotatedWish(const api::TFJob& job) {
  const auto annotation = job.metadata.annotations.find(api::kNetworkPolicyAnnotation);
  if (annotation == job.metadata.annotations.end()) return std::nullopt;
  if (annotation->second == "true") return true;
  if (annotation->second == "false") return false;
  return std::nullopt;
}

// Returns the `ports` of the rule: for each protocol, all ranges of ports between the closed ports.
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

// Returns whether adding a field that `rules` does not have leaves the meaning of its parent
// unchanged.
bool IsHarmless(std::string_view parent, std::string_view name, const Json& value) {
  static constexpr std::array<std::string_view, 6> kSelecting = {
      "matchExpressions", "namespaceSelector", "podSelector", "ipBlock", "from", "ports"};
  if (value.is_null() || (value.is_array() && value.empty())) return true;
  return parent != "matchLabels" &&
         std::find(kSelecting.begin(), kSelecting.end(), name) == kSelecting.end();
}

// Returns the path of the first difference; "" if there is none. `path` is the path of both values,
// and `name` is the last member in it.
std::string Difference(const Json& found, const Json& wanted, const std::string& path,
                       std::string_view name) {
  if (wanted.is_object() && found.is_object()) {
    for (const auto& [key, value] : wanted.items()) {
      const auto at = found.find(key);
      const std::string inner = StrCat(path, ".", key);
      const std::string difference = at == found.end() ? inner : Difference(*at, value, inner, key);
      if (!difference.empty()) return difference;
    }
    for (const auto& [key, value] : found.items()) {
      if (!wanted.contains(key) && !IsHarmless(name, key, value)) return StrCat(path, ".", key);
    }
    return "";
  }
  if (wanted.is_array() && found.is_array() && wanted.size() == found.size()) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string difference =
          Difference(found[i], wanted[i], StrCat(path, "[", i, "]"), name);
      if (!difference.empty()) return difference;
    }
    return "";
  }
  return found == wanted ? "" : path;
}

}  // namespace

std::optional<NetworkPolicies> ParseNetworkPolicies(std::string_view word) {
  if (word == "none") return NetworkPolicies::kNone;
  if (word == "annotated") return NetworkPolicies::kAnnotated;
  if (word == "all") return NetworkPolicies::kAll;
  return std::nullopt;
}

bool LetsJobsHaveOne(NetworkPolicies setting) {
  return setting == NetworkPolicies::kAnnotated || setting == NetworkPolicies::kAll;
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

std::string NetworkPolicyDifference(const Json& spec, const Json& rules) {
  return Difference(spec, rules, "spec", "spec");
}

}  // namespace tfjob::policy
