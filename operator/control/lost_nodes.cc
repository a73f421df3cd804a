#include "operator/control/lost_nodes.h"

#include <algorithm>

#include "operator/policy/facts/snapshot.h"

namespace tfjob::control {
namespace {

// If a pod is stuck although its node is not lost, there is another cause, such as a finalizer. The
// node may still be lost later, so check it again after this time.
constexpr Duration kAskAgain = 60s;

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

}  // namespace tfjob::control
