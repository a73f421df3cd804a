// Defines intervals and sizes that client and server share. Private to this package.
#pragma once

#include <cstddef>

#include "runtime/base/clock.h"

namespace tfjob::ps {

// Pause between two attempts to reach a server.
inline constexpr Duration kRetryInterval = std::chrono::milliseconds(100);
// A task that keeps waiting reports it at this interval.
inline constexpr Duration kReportInterval = std::chrono::seconds(10);
// Up to this many bytes, a thread that has something to send writes it itself, because waking the
// writer thread would cost more.
inline constexpr size_t kFlushBytes = size_t{64} << 10;

}  // namespace tfjob::ps
