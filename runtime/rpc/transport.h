// Defines Transport, one end of a stream. A stream is an ordered, reliable, bidirectional sequence
// of frames between two tasks. Tasks exchange tensors with parameter servers over streams. Both
// ends have the same interface. Transport has two implementations: a TCP socket
// (socket_transport.h, opened by socket_connector.h) and a pipe inside one process
// (pipe_connector.h). Shared memory and RDMA may be added.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/rpc/frame.h"
#include "runtime/rpc/identity.h"

namespace tfjob::rpc {

// One thread may write while another reads.
class Transport {
 public:
  virtual ~Transport() = default;
  // Blocks while the transport's own buffers are full. Returns Unavailable if the stream is broken.
  virtual Status Write(const OutgoingFrame& frame) = 0;
  // Like Write, but does not wait for the network if the transport can avoid this. Returns false if
  // only a part of the frame was written. WriteRest must then be called, on any thread, before the
  // next write. All bytes of the frame, even those without a `release`, must stay valid until the
  // whole frame is written.
  virtual StatusOr<bool> TryWrite(const OutgoingFrame& frame) {
    RETURN_IF_ERROR(Write(frame));
    return true;
  }
  virtual Status WriteRest() { return OkStatus(); }

  // Blocks until a frame has arrived. Returns Unavailable if the stream is broken or the peer is
  // gone, and DataLoss for bytes that are not a frame.
  virtual Status Read(IncomingFrame& frame) = 0;
  // Like Read, but may return when only the frame's header and table have arrived (see
  // IncomingFrame). The next call skips the part of this frame that the caller has not received.
  virtual Status BeginRead(IncomingFrame& frame) { return Read(frame); }
  // Returns how long the reading thread has been waiting for the next bytes of a frame that
  // BeginRead has returned; 0 if it is not waiting. May be called from any thread.
  virtual Duration Waiting() const { return Duration(0); }
  // Breaks the stream, so that Write and Read return. May be called from any thread.
  virtual void Cancel() = 0;
};

// Serves one kind of stream in a task.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // Decides whether to accept a stream from `peer`, whose identity was already checked. If Admit
  // returns an error, the peer is refused.
  virtual Status Admit(const Identity& peer) = 0;
  // Serves the stream, on its own thread, until it is closed. `address` is the peer's address.
  virtual void Serve(const Identity& peer, const std::string& address, Transport& transport) = 0;
};

// An open stream and the identity of its peer.
struct OpenStream {
  std::unique_ptr<Transport> transport;
  Identity peer;
};

// Opens streams to tasks.
class Connector {
 public:
  virtual ~Connector() = default;
  // Connects to the task at `address`, introduces `self` and requests the stream handler `service`.
  // Fails with Unavailable or DeadlineExceeded (no answer), FailedPrecondition (refused, with the
  // peer's message) or Unimplemented (no such service). Every error message names the address.
  virtual StatusOr<OpenStream> Connect(const std::string& address, const std::string& service,
                                       const Identity& self, Duration timeout) = 0;
};

}  // namespace tfjob::rpc
