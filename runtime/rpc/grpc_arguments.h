// Defines the settings of a task's gRPC server, which answers only short calls (requests for
// progress). Private to this package.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/synchronization/mutex.h"

namespace tfjob::rpc {

// Requests are a few bytes long, and tasks never compress them. Compressed messages are refused,
// because gRPC would check only their compressed size against the limit.
inline constexpr std::pair<const char*, int> kServerArguments[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 64 << 10},
    {GRPC_ARG_MAX_CONCURRENT_STREAMS, 64},
    {GRPC_ARG_HTTP2_BDP_PROBE, 0},
    {GRPC_ARG_KEEPALIVE_TIME_MS, 20'000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000},
    {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
    {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000},
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
    {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},
    {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE},
    {GRPC_ARG_MAX_METADATA_SIZE, 8 << 10},
};

// Returns the quota of this process's servers. When the quota is exhausted, gRPC stops reading, and
// then closes connections. Peers that misuse gRPC therefore cannot use up the memory that the
// variables need.
inline const grpc::ResourceQuota& ProcessQuota() {
  static const grpc::ResourceQuota* const quota = [] {
    constexpr size_t kMostBytes = size_t{64} << 20;
    constexpr int kMostThreads = 256;
    auto* made = new grpc::ResourceQuota("task");
    made->Resize(kMostBytes);
    made->SetMaxThreads(kMostThreads);
    return made;
  }();
  return *quota;
}

// Must be called before the first server is created. Keeps gRPC initialised until the process
// exits, because its final shutdown joins threads that may sleep for ten seconds. Also turns off
// Abseil's deadlock detection: Debian builds Abseil without NDEBUG, so Abseil would search for lock
// cycles whenever gRPC acquires a lock.
inline void PrepareGrpc() {
  [[maybe_unused]] static const bool prepared = [] {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc_init();
    return true;
  }();
}

}  // namespace tfjob::rpc
