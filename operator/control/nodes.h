// Finds nodes that are gone. Asks only if a pod outlives its deletion on a node: all nodes need not
// be watched, and the right to read nodes is needed only when asking.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "operator/client/client.h"
#include "operator/policy/facts/snapshot.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

using IsNodeLost = std::function<bool(const std::string& node)>;

struct LostNodes {
  std::set<std::string> names;
  std::optional<Duration> ask_again;  // a pod may outlive its deletion by then
};

// Asks about the nodes of those pods that outlive their grace period by `lost_pod_after`.
LostNodes FindLostNodes(const policy::Snapshot& snapshot, Time now, Duration lost_pod_after,
                        const IsNodeLost& is_lost);

// Asks the server, about each node at most every 10 s. Thread-safe. A node that may not be read
// counts as present.
class Nodes {
 public:
  Nodes(client::Client& client, Clock& clock) : client_(client), clock_(clock) {}

  // True if the node is not Ready, or does not exist.
  bool IsLost(const std::string& name);

 private:
  struct Answer {
    bool lost = false;
    Duration at{0};
  };

  client::Client& client_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Answer> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::control
