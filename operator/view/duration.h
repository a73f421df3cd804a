// Durations as flags and events say them.
#pragma once

#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::view {

// As Go writes them, of h, m, s, ms and us: "30s", "1h30m", "0.5s", "250ms", "0". Not negative; InvalidArgument otherwise.
StatusOr<Duration> ParseDuration(std::string_view text);

}  // namespace tfjob::view
