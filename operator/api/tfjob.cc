#include "operator/api/tfjob.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <span>

namespace tfjob::api {
namespace {

// In the order of the enums.
constexpr std::array<std::string_view, 5> kTypeNames = {"Chief", "Evaluator", "Master", "PS",
                                                        "Worker"};
constexpr std::array<std::string_view, 5> kLowerTypeNames = {"chief", "evaluator", "master", "ps",
                                                             "worker"};
constexpr std::array<std::string_view, 4> kRestartPolicies = {"Never", "Always", "OnFailure",
                                                              "ExitCode"};
constexpr std::array<std::string_view, 3> kCleanPodPolicies = {"None", "Running", "All"};
constexpr std::array<std::string_view, 2> kSuccessPolicies = {"", "AllWorkers"};
constexpr std::array<std::string_view, 2> kRestartScopes = {"Replica", "Job"};
constexpr std::array<std::string_view, 6> kConditionTypes = {"Created",   "Running", "Restarting",
                                                             "Succeeded", "Failed",  "Suspended"};

template <typename Enum>
std::optional<Enum> Parse(std::span<const std::string_view> names, std::string_view text) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

template <typename Enum>
std::string_view NameIn(std::span<const std::string_view> names, Enum value) {
  return names[static_cast<size_t>(value)];
}

}  // namespace

std::string_view Name(ReplicaType type) {
  return NameIn(kTypeNames, type);
}
std::string_view LowerName(ReplicaType type) {
  return NameIn(kLowerTypeNames, type);
}
std::string_view Name(RestartPolicy policy) {
  return NameIn(kRestartPolicies, policy);
}
std::string_view Name(CleanPodPolicy policy) {
  return NameIn(kCleanPodPolicies, policy);
}
std::string_view Name(SuccessPolicy policy) {
  return NameIn(kSuccessPolicies, policy);
}
std::string_view Name(RestartScope scope) {
  return NameIn(kRestartScopes, scope);
}
std::string_view Name(ConditionType type) {
  return NameIn(kConditionTypes, type);
}

std::optional<ReplicaType> ParseReplicaType(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return Parse<ReplicaType>(kLowerTypeNames, lower);
}

std::optional<RestartPolicy> ParseRestartPolicy(std::string_view text) {
  return Parse<RestartPolicy>(kRestartPolicies, text);
}

std::optional<CleanPodPolicy> ParseCleanPodPolicy(std::string_view text) {
  return Parse<CleanPodPolicy>(kCleanPodPolicies, text);
}

std::optional<SuccessPolicy> ParseSuccessPolicy(std::string_view text) {
  return Parse<SuccessPolicy>(kSuccessPolicies, text);
}

std::optional<RestartScope> ParseRestartScope(std::string_view text) {
  return Parse<RestartScope>(kRestartScopes, text);
}

std::optional<ConditionType> ParseConditionType(std::string_view text) {
  return Parse<ConditionType>(kConditionTypes, text);
}

bool ReplicaSpec::operator==(const ReplicaSpec& other) const {
  if (replicas != other.replicas || restart_policy != other.restart_policy) return false;
  if (pod_template == other.pod_template) return true;
  return pod_template && other.pod_template && *pod_template == *other.pod_template;
}

}  // namespace tfjob::api
