// Asks the server whether nodes are gone, on demand: all nodes need not be watched, and the right
// to read nodes is needed only when asking.
#pragma once

#include <map>
#include <string>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

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
