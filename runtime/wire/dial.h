// Implements the calling end of a connection: connects to a task and runs the hello.
#pragma once

#include <string>

#include "runtime/base/clock.h"
#include "runtime/wire/hello.h"
#include "runtime/wire/socket.h"

namespace tfjob::wire {

struct DialOptions {
  const JobKey* key = nullptr;  // borrowed; null if the job has none
  std::string claims;           // at most kMaxClaimBytes
  Purpose purpose = Purpose::kGrpc;
  Duration timeout{10s};
};

struct Dialled {
  UniqueFd socket;          // non-blocking; no bytes after the hello have been read
  std::string peer_claims;  // the claims of the task that answered, proven if there is a key
};

// Connects to `address` ("host:port") once: tries all addresses of the host until one accepts, then
// runs the hello. Blocks for at most `timeout`. Returns InvalidArgument if `address` is malformed,
// Unavailable if the connection cannot be established or breaks, and DeadlineExceeded if the peer
// does not answer the hello. Propagates errors from CallerHello. Error messages do not name the
// address. Thread-safe.
StatusOr<Dialled> Dial(const std::string& address, const DialOptions& options);

// Like Dial, but while the result is Unavailable, retries until the timeout has passed, because the
// task may be starting.
StatusOr<Dialled> DialUntil(const std::string& address, const DialOptions& options);

}  // namespace tfjob::wire
