// Defines intervals and sizes that client and server share. Private to this package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/rpc/frame.h"

namespace tfjob::ps {

// Returns InvalidArgument, with a message that says what to change, if a string (a definition, or a
// server's part of the ledger) is too long for a frame.
inline Status CheckFitsAFrame(size_t bytes, const std::string& what) {
  constexpr size_t kMost = rpc::kMaxFrameBytes - rpc::kHeaderBytes - rpc::kSegmentBytes;
  if (bytes <= kMost) return OkStatus();
  return InvalidArgument(what, " takes ", bytes, " bytes, but at most ", kMost,
                         " can be sent: use fewer variables or larger shards (shard_bytes)");
}

// Pause between two attempts to reach a server.
inline constexpr Duration kRetryInterval = std::chrono::milliseconds(100);
// The interval at which a waiting task reports the wait.
inline constexpr Duration kReportInterval = std::chrono::seconds(10);
// A thread that has at most this many bytes to send writes them itself, because waking the writer
// thread would cost more.
inline constexpr size_t kFlushBytes = size_t{64} << 10;
// The highest step that a message may name.
inline constexpr int64_t kGreatestStep = int64_t{1} << 60;
// The highest position in the data, in batches.
inline constexpr int64_t kMostDrawn = int64_t{1} << 60;
// The highest epoch. A chief's epochs are times in microseconds, which are far below this limit.
inline constexpr int64_t kGreatestEpoch = int64_t{1} << 60;
// How far an epoch may be ahead of the server's clock, in microseconds: ten years. This tolerates a
// wrong clock in the chief, but prevents a stranger from claiming the highest possible epoch.
inline constexpr int64_t kMostEpochAhead = int64_t{10} * 365 * 24 * 3600 * 1'000'000;

}  // namespace tfjob::ps
