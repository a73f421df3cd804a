// Finds lost nodes on which terminating pods are stuck. Calls `is_lost` only for a node with a pod
// that still exists `lost_pod_after` after its deletion timestamp. Pure except for the calls of
// `is_lost`.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "runtime/base/clock.h"

namespace tfjob::policy {
struct Snapshot;
}

namespace tfjob::control {

using IsNodeLost = std::function<bool(const std::string& node)>;

struct LostNodes {
  std::set<std::string> names;
  std::optional<Duration> ask_again;  // time until the next check; nullopt if none is needed
};

// Returns the lost nodes, and how long to wait before checking again.
LostNodes FindLostNodes(const policy::Snapshot& snapshot, Time now, Duration lost_pod_after,
                        const IsNodeLost& is_lost);

}  // namespace tfjob::control
