#include "operator/policy/facts/reported_causes.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/service.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {
namespace {

// Maps the UIDs that causes may refer to: each to its pod, or to nullptr if it is not the UID of a
// pod.
using KnownObjects = std::map<std::string_view, const objects::Pod*>;

KnownObjects Known(const Snapshot& snapshot, const History& history) {
  KnownObjects known;
  for (const auto& [type, indexes] : history.indexes) {
    for (const IndexHistory& index : indexes) known[index.uid] = nullptr;
  }
  for (const auto* names : {&history.blocked_pods, &history.blocked_services}) {
    for (const auto& [name, blocked] : *names) known[blocked.holder_uid] = nullptr;
  }
  for (const auto& service : snapshot.services) known[service->metadata.uid] = nullptr;
  for (const PodGroup& group : snapshot.pod_groups) known[group.object->metadata.uid] = nullptr;
  for (const auto& workload : snapshot.workloads) known[workload->metadata.uid] = nullptr;
  if (const auto& policy = snapshot.network_policy) known[policy->metadata.uid] = nullptr;
  for (const auto& pod : snapshot.departed) known[pod->metadata.uid] = pod.get();
  for (const auto& pod : snapshot.pods) known[pod->metadata.uid] = pod.get();
  return known;
}

// Splits a cause at its slashes: "exit/<uid>", "container/<uid>/tensorflow/Error/3".
using Parts = std::vector<std::string>;

// Returns the UID that the cause refers to; "" if it refers to none.
std::string_view UidIn(const Parts& cause) {
  constexpr std::array<std::string_view, 6> kAboutObjects = {
      "condition", "container", "delete-failed", "exit", "lost-node", "restart"};
  if (cause.size() == 3 && cause[0] == "blocked") return cause[2];
  const bool about_object =
      cause.size() >= 2 &&
      std::find(kAboutObjects.begin(), kAboutObjects.end(), cause[0]) != kAboutObjects.end();
  return about_object ? std::string_view(cause[1]) : "";
}

// Returns whether the cause is the exit of a container of `pod` that has since been restarted.
bool IsOfEarlierRun(const Parts& cause, const objects::Pod& pod) {
  const bool has_count = cause.size() >= 5 && !cause.back().empty() &&
                         cause.back().find_first_not_of("0123456789") == std::string::npos;
  if (cause[0] != "container" || !has_count) return false;
  const objects::ContainerStatus* container = pod.container(cause[2]);
  return container != nullptr && cause.back() != StrCat(container->restart_count);
}

}  // namespace

void ForgetSettledCauses(const Snapshot& snapshot, History& history) {
  if (history.reported.empty()) return;
  const KnownObjects known = Known(snapshot, history);
  std::erase_if(history.reported, [&](const std::string& text) {
    if (text.starts_with(kPolicyChangesCause)) return history.policy_changes == 0;
    const Parts cause = absl::StrSplit(text, '/');
    const std::string_view uid = UidIn(cause);
    if (uid.empty()) return false;
    const auto found = known.find(uid);
    if (found == known.end()) return true;
    return found->second != nullptr && IsOfEarlierRun(cause, *found->second);
  });
}

}  // namespace tfjob::policy
