// Times and durations as people read and write them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/clock.h"

namespace tfjob::cmd {

// As kubectl writes ages: "59s", "5m12s", "3h4m", "47h", "3d2h", "200d", "2y10d".
std::string HumanDuration(Duration duration);
// From then to now; "<unknown>" for a time that is unset.
std::string HumanAge(Time then, Time now);

// "30s", "5m", "1h30m", "250ms", "0"; InvalidArgument otherwise.
StatusOr<Duration> ParseDuration(std::string_view text);

}  // namespace tfjob::cmd
