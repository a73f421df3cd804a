// Reads events for display.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"
#include "runtime/base/json.h"

namespace tfjob::cli {

struct EventLine {
  Time last;          // the latest occurrence
  int64_t count = 1;  // number of occurrences
  bool warning = false;
  std::string reason;
  std::string message;
  std::string object;      // "Pod mnist-worker-0"
  std::string object_uid;  // UID of the object that the event is about
};

// Reads a core/v1 Event. A field that the event lacks keeps its default, except that `object` is a
// single space if the event names no object.
EventLine ReadEvent(const Json& event);

// Returns the events in the namespace about the objects with these UIDs, newest last.
StatusOr<std::vector<EventLine>> EventsAbout(Cluster& cluster, const std::string& name_space,
                                             const std::set<std::string>& uids);

}  // namespace tfjob::cli
