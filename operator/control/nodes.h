// Determines on demand whether nodes are lost (deleted or not Ready), so the operator does not have
// to watch all nodes. The operator needs permission to read nodes only for these requests.
#pragma once

#include <map>
#include <string>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Queries the server about each node at most once every 10 s. A node that cannot be read, for
// example because permission is missing, is not considered lost. Thread-safe.
class Nodes {
 public:
  Nodes(client::Client& client, Clock& clock) : client_(client), clock_(clock) {}

  // Returns true if the node is not Ready or does not exist.
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
