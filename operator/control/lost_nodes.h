// Finds the nodes of stuck pods that are gone. Calls `is_lost` only for nodes with a pod that still
// exists `lost_pod_after` past its deletion timestamp. Pure apart from that call.
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
  std::optional<Duration> ask_again;  // when to check again; nullopt: not needed
};

// Returns the lost nodes, and when to check again.
LostNodes FindLostNodes(const policy::Snapshot& snapshot, Time now, Duration lost_pod_after,
                        const IsNodeLost& is_lost);

}  // namespace tfjob::control
