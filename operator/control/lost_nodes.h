// Finds nodes that are gone. Asks only if a pod outlives its deletion on a node. Pure, except for
// the question.
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
  std::optional<Duration> ask_again;  // a pod may outlive its deletion by then
};

// Asks about the nodes of those pods that outlive their grace period by `lost_pod_after`.
LostNodes FindLostNodes(const policy::Snapshot& snapshot, Time now, Duration lost_pod_after,
                        const IsNodeLost& is_lost);

}  // namespace tfjob::control
