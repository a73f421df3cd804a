// Parses durations in the form that flags and the kubelet's messages use.
#pragma once

#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::view {

// Parses a duration in Go's format with the units h, m, s, ms and us: "30s", "1h30m", "0.5s",
// "250ms", "0". Returns InvalidArgument for any other text and for durations that are negative or
// too long.
StatusOr<Duration> ParseDuration(std::string_view text);

}  // namespace tfjob::view
