// Defines a connected socket of a SocketCommunicator, with the frames in progress in both
// directions. Never waits. Used by one thread at a time. Private to this package.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/collectives/socket/socket_frame.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

class SocketLink {
 public:
  explicit SocketLink(wire::UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  // Sending. At any time, at most one data frame and at most one other frame are in progress. The
  // other frame is sent before the next data frame.
  bool sending() const { return sent_ < size(); }
  bool wants_to_send() const { return sending() || notice_sent_ < notice_size_; }
  // Starts a frame. The payload must not change until the frame is sent.
  void Begin(const FrameHeader& header, std::span<const std::byte> payload);
  // Queues a frame other than a data frame. If the previous such frame has not been sent yet, drops
  // the new one.
  void Queue(FrameHeader header, std::string_view text);
  // Sends as many bytes as the socket accepts. Returns whether it accepted any.
  StatusOr<bool> Send();
  bool writable() const { return writable_; }
  // Returns whether the peer no longer receives data. Data that the peer has sent can still be
  // received.
  bool broken() const { return broken_; }

  // Receiving. `header` is the header of the frame in progress, if it has arrived.
  const std::optional<FrameHeader>& header() const { return header_; }
  bool receiving() const { return receiving_; }  // ReceiveInto was called
  // `place` receives the payload, and must have the length that the header states.
  void ReceiveInto(std::span<std::byte> place);
  bool received() const { return receiving_ && filled_ == place_.size(); }
  // Ends the frame. Call this only if received() is true.
  void Next();
  // Ends the frame, and discards the part of the payload that has not been received.
  void Skip();
  // Reads bytes that have arrived: those of the header or, after ReceiveInto, those of the payload.
  // Returns whether any had arrived. Returns DataLoss if the bytes are not a header.
  StatusOr<bool> Receive();
  bool readable() const { return readable_; }

  // Returns whether the peer has closed its end, or the connection is broken.
  bool ended() const { return ended_; }
  // Reports that poll found the socket ready.
  void Ready(bool to_read, bool to_write);
  // Sends the queued frame if no other frame is in progress, and closes the outgoing direction.
  void Part();
  // Discards the bytes that have arrived, so that closing the socket does not reset the connection
  // before the peer has read what was sent to it.
  void Drain();

 private:
  static constexpr size_t kReadAhead = 8192;

  size_t size() const { return header_bytes_.size() * (begun_ ? 1 : 0) + payload_.size(); }
  StatusOr<bool> SendNotice();
  StatusOr<bool> SendData();
  StatusOr<bool> Sent(ssize_t count);
  StatusOr<bool> TakeBuffered();
  StatusOr<bool> Fill();

  wire::UniqueFd socket_;
  bool writable_ = true, readable_ = true, ended_ = false, broken_ = false;

  bool begun_ = false;
  FrameBytes header_bytes_{};
  std::span<const std::byte> payload_;
  size_t sent_ = 0;  // bytes sent of the header and the payload
  std::array<std::byte, kFrameHeaderBytes + kMostReasonBytes> notice_{};
  size_t notice_size_ = 0, notice_sent_ = 0;

  std::optional<FrameHeader> header_;
  bool receiving_ = false;
  std::span<std::byte> place_;
  size_t filled_ = 0;
  size_t skip_ = 0;                             // bytes to discard before the next header
  std::array<std::byte, kReadAhead> buffer_{};  // bytes [begin_, end_) have not been used
  size_t begin_ = 0, end_ = 0;
};

}  // namespace tfjob::collectives
