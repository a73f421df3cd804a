// Defines intervals and sizes that client and server share. Private to this package.
#pragma once

#include <cstddef>

#include "runtime/base/clock.h"

namespace tfjob::ps {

// Pause between two attempts to reach a server.
inline constexpr Duration kRetryInterval = std::chrono::milliseconds(100);
// A long wait is reported once per interval.
inline constexpr Duration kReportInterval = std::chrono::seconds(10);
// A thread writes up to this many bytes itself, because waking the writer would cost more.
inline constexpr size_t kFlushBytes = size_t{64} << 10;

}  // namespace tfjob::ps
