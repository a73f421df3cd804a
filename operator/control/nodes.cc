#include "operator/control/nodes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/control/log.h"

namespace tfjob::control {
namespace {

constexpr Duration kAnswerHolds = 10s;
// A pod that hangs on a node that is not lost has other reasons, such as a finalizer; the node may
// still be lost later.
constexpr Duration kAskAgain = 60s;

bool IsReady(const Json& node) {
  const auto conditions = JsonField(node)["status"]["conditions"].Elements();
  if (!conditions.ok()) return false;
  return std::any_of(conditions->begin(), conditions->end(), [](const JsonField& condition) {
    return condition["type"].StringOr("").value_or("") == "Ready" &&
           condition["status"].StringOr("").value_or("") == "True";
  });
}

}  // namespace

LostNodes FindLostNodes(const policy::Snapshot& snapshot, Time now, Duration lost_pod_after,
                        const IsNodeLost& is_lost) {
  LostNodes found;
  for (const auto& pod : snapshot.pods) {
    if (!pod->metadata.terminating() || pod->node_name.empty()) continue;
    Duration left = *pod->metadata.deletion_timestamp + lost_pod_after - now;
    if (left <= Duration(0)) {
      if (found.names.contains(pod->node_name)) continue;
      if (is_lost(pod->node_name)) {
        found.names.insert(pod->node_name);
        continue;
      }
      left = kAskAgain;
    }
    found.ask_again = std::min(found.ask_again.value_or(left), left);
  }
  return found;
}

bool Nodes::IsLost(const std::string& name) {
  const Duration now = clock_.Monotonic();
  {
    MutexLock lock(mutex_);
    std::erase_if(answers_,
                  [now](const auto& held) { return held.second.at + kAnswerHolds < now; });
    const auto held = answers_.find(name);
    if (held != answers_.end()) return held->second.lost;
  }
  const StatusOr<Json> node = client_.GetJson({objects::Kind::kNode, "", name});
  Answer answer{node.ok() ? !IsReady(*node) : node.status().code() == StatusCode::kNotFound, now};
  if (!node.ok() && !answer.lost) {
    kLog.Debug("node cannot be read", {{"node", name}, {"error", node.status()}});
  }
  MutexLock lock(mutex_);
  answers_[name] = answer;
  return answer.lost;
}

}  // namespace tfjob::control
