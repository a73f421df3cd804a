// Times and durations as people read them.
#pragma once

#include <string>

#include "runtime/base/clock.h"

namespace tfjob::view {

// As kubectl writes ages: "59s", "5m12s", "3h4m", "47h", "3d2h", "200d", "2y10d".
std::string HumanDuration(Duration duration);
// From then to now; "<unknown>" for a time that is unset.
std::string HumanAge(Time then, Time now);

}  // namespace tfjob::view
