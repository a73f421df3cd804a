#include "operator/policy/rules/key_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace tfjob::policy {
namespace {

// Returns the most common key id among the live pods; nullopt if no pod is live.
std::optional<std::string> IdOfLivingPods(const Replicas& replicas) {
  std::map<std::string_view, int64_t> counts;
  std::vector<std::string_view> found;  // in slot order
  for (const ReplicaGroup& group : replicas.groups) {
    for (const Replica& replica : group.replicas) {
      if (!replica.alive()) continue;
      if (++counts[replica.pod->key_id] == 1) found.push_back(replica.pod->key_id);
    }
  }
  const auto most = std::max_element(
      found.begin(), found.end(),
      [&](std::string_view a, std::string_view b) { return counts[a] < counts[b]; });
  if (most == found.end()) return std::nullopt;
  return std::string(*most);
}

}  // namespace

KeyChoice ChooseKey(const Replicas& replicas, const std::vector<std::string>& key_ids) {
  const std::string newest = key_ids.empty() ? "" : key_ids.back();
  std::optional<std::string> living = IdOfLivingPods(replicas);
  if (!living) return {newest, ""};
  const bool known = std::find(key_ids.begin(), key_ids.end(), *living) != key_ids.end();
  if (living->empty() || known) return {*std::move(living), ""};
  return {newest, *std::move(living)};
}

}  // namespace tfjob::policy
