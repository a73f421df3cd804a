// Defines the gRPC settings that channels and servers share. Private to this package.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "runtime/base/env.h"
#include "runtime/rpc/frame.h"

namespace tfjob::rpc {

// Frames are large and credits already limit their senders, so the HTTP/2 windows are large from
// the start. BDP (bandwidth-delay product) probing is off, because when measured it took a third of
// the CPU time of an exchange. Our peers never compress, so gRPC is told not to inflate compressed
// messages: it would compare only their compressed size with the limit.
inline constexpr std::pair<const char*, int> kStreamArguments[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kMaxFrameBytes)},
    {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
    {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20},
    {GRPC_ARG_HTTP2_BDP_PROBE, 0},
    {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20},
    {GRPC_ARG_KEEPALIVE_TIME_MS, 20'000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000},
    {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
    {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000},
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
    {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},
    {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE},
    {GRPC_ARG_MAX_METADATA_SIZE, 8 << 10},
};
// A task opens one stream per channel, and polls of progress are short.
inline constexpr int kMostStreamsOfAConnection = 64;
// Every stream takes a thread. A job has fewer tasks than this.
inline constexpr int kMostThreads = 1 << 14;

// Returns how much memory gRPC may use in a process that may use `available` bytes: half of it.
// gRPC needs far less in practice: a stream holds at most 16 MiB that its receiver has not consumed
// (credits, frame.h). The limit exists for peers that ignore credits: without it, many of their
// streams could take the memory that the variables need. The minimum suffices for 32 full streams.
constexpr size_t MostTransportBytes(int64_t available) {
  constexpr int64_t kLeast = int64_t{512} << 20;
  return static_cast<size_t>(std::max(available / 2, kLeast));
}

// Returns the quota that the server and all channels of this process share. When it is used up,
// gRPC stops reading, and then closes streams.
inline const grpc::ResourceQuota& ProcessQuota() {
  static const grpc::ResourceQuota* const quota = [] {
    auto* made = new grpc::ResourceQuota("task");
    made->Resize(MostTransportBytes(AvailableMemory()));
    made->SetMaxThreads(kMostThreads);
    return made;
  }();
  return *quota;
}

// Must be called before the first channel or server is created. Keeps gRPC initialised until
// the process exits, because its final shutdown joins threads that may sleep for ten seconds.
// Also turns off Abseil's deadlock detection: Debian builds Abseil without NDEBUG, so it would
// look for lock cycles at every lock that gRPC takes, which costs a thirtieth of the time of a
// small exchange.
inline void PrepareGrpc() {
  [[maybe_unused]] static const bool prepared = [] {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc_init();
    return true;
  }();
}

}  // namespace tfjob::rpc
