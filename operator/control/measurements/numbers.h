// Defines a snapshot of the control loop's statistics (object counts, queue depth, processing
// times), which become gauges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "runtime/base/clock.h"

namespace tfjob::control {

struct CacheNumbers {
  // The number of jobs by namespace and state. The state is the newest condition that is True, or
  // "Pending" if there is none.
  std::map<std::pair<std::string, std::string>, int64_t> jobs;
  int64_t pods = 0;
  int64_t services = 0;
};

struct QueueNumbers {
  int64_t depth = 0;
  int64_t working = 0;
  Duration unfinished{0};  // total time spent so far on the keys being worked on
  Duration longest{0};     // the longest time spent so far on one of these keys
  // The longest time for which a worker has been processing a key without completing a call for it.
  Duration longest_call{0};
};

struct Numbers {
  CacheNumbers cache;
  QueueNumbers queue;
};

}  // namespace tfjob::control
