// Implements Transport, for both ends, over a connected TCP socket that carries only frames
// (frame.h). The kernel copies payloads directly from the memory of the sender's segments and, with
// BeginRead, directly into the memory of the receiver. No thread is dedicated to the socket: the
// reading and writing threads sleep in the system calls.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/scheduler.h"
#include "runtime/rpc/transport.h"
#include "runtime/wire/socket.h"

namespace tfjob::rpc {

class SocketTransport : public Transport, private PayloadSource {
 public:
  // `socket` must be connected, and its next byte in either direction must be the first of a frame.
  explicit SocketTransport(wire::UniqueFd socket);
  // No other thread may still use the transport.
  ~SocketTransport() override;

  Status Write(const OutgoingFrame& frame) override;
  StatusOr<bool> TryWrite(const OutgoingFrame& frame) override;
  Status WriteRest() override;
  Status Read(IncomingFrame& frame) override;
  Status BeginRead(IncomingFrame& frame) override;
  Duration Waiting() const override;
  void Cancel() override;

  // Starts the handshake. Until EndHandshake, a frame may have at most one segment, and reading
  // returns DeadlineExceeded once `timeout` has passed since this call. Called by the reading
  // thread.
  void BeginHandshake(Duration timeout);
  void EndHandshake();

 private:
  // Writing.
  void Begin(const OutgoingFrame& frame);
  // Sends the frame. Returns true once the whole frame has been sent or, with MSG_DONTWAIT, false
  // as soon as the socket's buffer is full.
  StatusOr<bool> SendParts(int flags);
  void Advance(size_t bytes);
  void ReleaseAll();

  // Reading.
  Status Receive(std::span<std::byte> to) override;
  std::span<const std::byte> Lend(size_t bytes) override;
  // Reads a header and a table of `bytes` bytes into large_prefix_.
  Status ReceivePrefix(size_t bytes);
  // Reads until the buffer, which must be large enough, contains at least `bytes` unused bytes.
  Status Fill(size_t bytes);
  // Sleeps until there are bytes to read or the deadline of the handshake has passed.
  Status AwaitBytes() const;
  // Reads at least one byte. While a payload is being received, Waiting() reports how long this
  // call has been waiting.
  StatusOr<size_t> ReceiveSome(std::span<std::byte> to, int flags);
  Status SkipPayload();
  size_t buffered() const { return end_ - begin_; }

  const wire::UniqueFd socket_;

  // The frame being written.
  std::string prefix_;
  std::vector<iovec> parts_;
  size_t next_part_ = 0;
  std::vector<std::pair<void (*)(void*), void*>> releases_;

  // Bytes [begin_, end_) of the buffer have arrived and have not been used yet.
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;
  std::vector<std::byte> large_prefix_;  // a header and table that exceed the buffer
  size_t payload_ = 0;                   // payload bytes of the current frame not yet consumed
  bool receiving_ = false;               // a payload is being received
  uint32_t most_segments_ = kMaxSegments;
  std::optional<SteadyTime> deadline_;         // for the handshake
  Status broken_;                              // why a payload is incomplete
  std::atomic<int64_t> waiting_since_us_ = 0;  // 0: not waiting
};

}  // namespace tfjob::rpc
