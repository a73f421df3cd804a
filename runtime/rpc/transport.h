// The seam under every tensor exchange: an ordered, reliable, bidirectional stream of frames
// between two tasks. gRPC over TCP (grpc_stream.h, opened by grpc_connector.h) and a pipe inside
// one process (pipe_connector.h) implement it; shared memory and RDMA may follow.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/rpc/frame.h"
#include "runtime/rpc/identity.h"

namespace tfjob::rpc {

// One thread may write and one other may read at the same time.
class Transport {
 public:
  virtual ~Transport() = default;
  // Blocks while the transport's own buffers are full. Unavailable when the stream is broken.
  virtual Status Write(const OutgoingFrame& frame) = 0;
  // Blocks until a frame is there. Unavailable when the peer is gone; what the peer said as it
  // closed, if it said anything; DataLoss for bytes that are no frame.
  virtual Status Read(IncomingFrame& frame) = 0;
  // Breaks the stream: Write and Read return. From any thread.
  virtual void Cancel() = 0;
};

// What serves one kind of stream in a task.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // After the identity was checked and before the stream exists; an error refuses the peer.
  virtual Status Admit(const Identity& peer) = 0;
  // Runs on a thread of the stream's own until the stream ends. `address` is where the peer came
  // from.
  virtual void Serve(const Identity& peer, const std::string& address, Transport& transport) = 0;
};

// A stream that is open, and who is at its other end.
struct OpenStream {
  std::unique_ptr<Transport> transport;
  Identity peer;
};

// Opens streams to tasks.
class Connector {
 public:
  virtual ~Connector() = default;
  // Connects to the task at `address`, introduces `self`, and asks for the stream handler
  // `service`. Unavailable or DeadlineExceeded (nobody answers there), FailedPrecondition (refused,
  // in the peer's words), Unimplemented (no such service). Every message names the address.
  virtual StatusOr<OpenStream> Connect(const std::string& address, const std::string& service,
                                       const Identity& self, Duration timeout) = 0;
};

}  // namespace tfjob::rpc
