// Formats times and durations for people.
#pragma once

#include <string>

#include "runtime/base/clock.h"

namespace tfjob::view {

// Formats a duration as kubectl formats ages: "59s", "5m12s", "3h4m", "47h", "3d2h",
// "200d", "2y10d".
std::string HumanDuration(Duration duration);
// Formats the time from `then` to `now`; "<unknown>" if `then` is unset.
std::string HumanAge(Time then, Time now);

}  // namespace tfjob::view
