// Intervals and sizes that both ends of the protocol use. Inside the room only.
#pragma once

#include <cstddef>

#include "runtime/base/clock.h"

namespace tfjob::ps {

// The pause between two attempts to reach a server.
inline constexpr Duration kRetryInterval = std::chrono::milliseconds(100);
// A wait that lasts is reported once per interval.
inline constexpr Duration kReportInterval = std::chrono::seconds(10);
// A thread with at most this many bytes writes them itself: waking another costs more.
inline constexpr size_t kFlushBytes = size_t{64} << 10;

}  // namespace tfjob::ps
