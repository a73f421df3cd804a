#include "operator/api/tfjob.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <span>

namespace tfjob::api {
namespace {

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
  return NameIn(kReplicaTypeNames, type);
}
std::string_view LowerName(ReplicaType type) {
  return NameIn(kLowerReplicaTypeNames, type);
}
std::string_view Name(RestartPolicy policy) {
  return NameIn(kRestartPolicyNames, policy);
}
std::string_view Name(CleanPodPolicy policy) {
  return NameIn(kCleanPodPolicyNames, policy);
}
std::string_view Name(SuccessPolicy policy) {
  return NameIn(kSuccessPolicyNames, policy);
}
std::string_view Name(RestartScope scope) {
  return NameIn(kRestartScopeNames, scope);
}
std::string_view Name(ConditionType type) {
  return NameIn(kConditionTypeNames, type);
}

std::optional<ReplicaType> ParseReplicaType(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return Parse<ReplicaType>(kLowerReplicaTypeNames, lower);
}

std::optional<RestartPolicy> ParseRestartPolicy(std::string_view text) {
  return Parse<RestartPolicy>(kRestartPolicyNames, text);
}

std::optional<CleanPodPolicy> ParseCleanPodPolicy(std::string_view text) {
  return Parse<CleanPodPolicy>(kCleanPodPolicyNames, text);
}

std::optional<SuccessPolicy> ParseSuccessPolicy(std::string_view text) {
  return Parse<SuccessPolicy>(kSuccessPolicyNames, text);
}

std::optional<RestartScope> ParseRestartScope(std::string_view text) {
  return Parse<RestartScope>(kRestartScopeNames, text);
}

std::optional<ConditionType> ParseConditionType(std::string_view text) {
  return Parse<ConditionType>(kConditionTypeNames, text);
}

bool ReplicaSpec::operator==(const ReplicaSpec& other) const {
  if (replicas != other.replicas || restart_policy != other.restart_policy) return false;
  if (pod_template == other.pod_template) return true;
  return pod_template && other.pod_template && *pod_template == *other.pod_template;
}

}  // namespace tfjob::api
