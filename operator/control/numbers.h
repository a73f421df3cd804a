// Counts what the control loop holds at one moment, for gauges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "runtime/base/clock.h"

namespace tfjob::control {

struct CacheNumbers {
  // By namespace and state: the newest condition that is True, or "Pending" without one.
  std::map<std::pair<std::string, std::string>, int64_t> jobs;
  int64_t pods = 0;
  int64_t services = 0;
};

struct QueueNumbers {
  int64_t depth = 0;
  int64_t working = 0;
  Duration unfinished{0};  // total time spent so far on the keys being worked on
  Duration longest{0};     // the maximum
};

struct Numbers {
  CacheNumbers cache;
  QueueNumbers queue;
};

}  // namespace tfjob::control
