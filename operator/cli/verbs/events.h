// Events as people read them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

struct EventLine {
  Time last;          // when it happened last
  int64_t count = 1;  // how often it happened
  bool warning = false;
  std::string reason;
  std::string message;
  std::string object;      // "Pod mnist-worker-0"
  std::string object_uid;  // of what it is about
};

// A core/v1 Event; what is missing stays empty.
EventLine ReadEvent(const Json& event);

// The events of the namespace about the objects of these UIDs, the newest last.
StatusOr<std::vector<EventLine>> EventsAbout(Cluster& cluster, const std::string& name_space,
                                             const std::set<std::string>& uids);

}  // namespace tfjob::cli
