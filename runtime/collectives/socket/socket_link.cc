#include "runtime/collectives/socket/socket_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tfjob::collectives {
namespace {

bool IsEnd(int error) {
  return error == EPIPE || error == ECONNRESET || error == ETIMEDOUT || error == EHOSTUNREACH ||
         error == ENETUNREACH || error == ECONNABORTED;
}

}  // namespace

void SocketLink::Begin(const FrameHeader& header, std::span<const std::byte> payload) {
  header_bytes_ = EncodeFrame(header);
  payload_ = payload;
  begun_ = true;
  sent_ = 0;
}

void SocketLink::Queue(FrameHeader header, std::string_view text) {
  if (notice_sent_ < notice_size_) return;
  text = text.substr(0, static_cast<size_t>(kMostReasonBytes));
  header.length = static_cast<int64_t>(text.size());
  const FrameBytes bytes = EncodeFrame(header);
  std::ranges::copy(bytes, notice_.begin());
  std::memcpy(notice_.data() + bytes.size(), text.data(), text.size());
  notice_size_ = bytes.size() + text.size();
  notice_sent_ = 0;
}

StatusOr<bool> SocketLink::Send() {
  if (!writable_ || ended_ || broken_) return false;
  if (sent_ == 0 || !sending()) {  // between two frames
    if (notice_sent_ < notice_size_) return SendNotice();
  }
  return sending() ? SendData() : false;
}

StatusOr<bool> SocketLink::SendNotice() {
  const ssize_t count = send(fd(), notice_.data() + notice_sent_, notice_size_ - notice_sent_,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) notice_sent_ += static_cast<size_t>(count);
  if (count < 0 && IsEnd(errno)) {
    notice_sent_ = notice_size_;  // the peer is gone, but frames from it may still be unread
    return false;
  }
  return Sent(count);
}

StatusOr<bool> SocketLink::SendData() {
  iovec parts[2];
  int used = 0;
  const size_t of_header = std::min(sent_, header_bytes_.size());
  if (of_header < header_bytes_.size()) {
    parts[used++] = {header_bytes_.data() + of_header, header_bytes_.size() - of_header};
  }
  const size_t of_payload = sent_ - of_header;
  if (of_payload < payload_.size()) {
    // sendmsg does not write to the bytes that it sends.
    parts[used++] = {const_cast<std::byte*>(payload_.data()) + of_payload,
                     payload_.size() - of_payload};
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(used);
  const ssize_t count = sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) sent_ += static_cast<size_t>(count);
  return Sent(count);
}

StatusOr<bool> SocketLink::Sent(ssize_t count) {
  if (count > 0) return true;
  if (errno == EINTR) return true;
  writable_ = false;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  if (!IsEnd(errno)) return ErrnoStatus(errno, "send");
  broken_ = true;
  readable_ = true;
  return false;
}

void SocketLink::ReceiveInto(std::span<std::byte> place) {
  receiving_ = true;
  place_ = place;
  filled_ = 0;
}

void SocketLink::Next() {
  header_.reset();
  receiving_ = false;
}

void SocketLink::Skip() {
  if (header_) skip_ = static_cast<size_t>(header_->length) - (receiving_ ? filled_ : 0);
  Next();
}

StatusOr<bool> SocketLink::Receive() {
  if (header_ && (!receiving_ || received())) return false;
  ASSIGN_OR_RETURN(const bool taken, TakeBuffered());
  if (taken) return true;
  if (!readable_ || ended_) return false;
  return Fill();
}

StatusOr<bool> SocketLink::TakeBuffered() {
  const size_t skipped = std::min(skip_, end_ - begin_);
  skip_ -= skipped;
  begin_ += skipped;
  if (skip_ > 0) return false;
  const size_t buffered = end_ - begin_;
  if (receiving_) {
    const size_t count = std::min(buffered, place_.size() - filled_);
    if (count > 0) std::memcpy(place_.data() + filled_, buffer_.data() + begin_, count);
    filled_ += count;
    begin_ += count;
    return count > 0;
  }
  if (buffered < kFrameHeaderBytes) return false;
  ASSIGN_OR_RETURN(header_,
                   DecodeFrame(std::span(buffer_).subspan(begin_).first<kFrameHeaderBytes>()));
  begin_ += kFrameHeaderBytes;
  return true;
}

// Reads bytes from the socket. While a payload is being received, reads the rest of the payload
// into place_, and up to one more header into buffer_. Otherwise, reads as many bytes as fit into
// buffer_.
StatusOr<bool> SocketLink::Fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  iovec parts[2];
  int used = 0;
  const size_t wanted = receiving_ ? place_.size() - filled_ : 0;
  if (wanted > 0) parts[used++] = {place_.data() + filled_, wanted};
  const size_t ahead = receiving_ ? kFrameHeaderBytes : buffer_.size() - end_;
  parts[used++] = {buffer_.data() + end_, ahead};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(used);
  const ssize_t count = recvmsg(fd(), &message, MSG_DONTWAIT);
  if (count > 0) {
    const size_t placed = std::min(static_cast<size_t>(count), wanted);
    filled_ += placed;
    end_ += static_cast<size_t>(count) - placed;
    // A partial read has emptied the socket, so another read would find nothing.
    readable_ = static_cast<size_t>(count) == wanted + ahead;
    return true;
  }
  if (count < 0 && errno == EINTR) return true;
  readable_ = false;
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (count < 0 && !IsEnd(errno)) return ErrnoStatus(errno, "recv");
  ended_ = true;
  return true;
}

void SocketLink::Ready(bool to_read, bool to_write) {
  readable_ |= to_read;
  writable_ |= to_write;
}

void SocketLink::Part() {
  if (sent_ == 0 || !sending()) {
    // If the socket accepts only a part of the frame, the peer sees the connection close in the
    // middle of a frame.
    (void)send(fd(), notice_.data() + notice_sent_, notice_size_ - notice_sent_,
               MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  notice_sent_ = notice_size_;
  shutdown(fd(), SHUT_WR);
}

void SocketLink::Drain() {
  constexpr int kMostReads = 64;  // a peer that keeps sending cannot keep this rank busy
  for (int i = 0; i < kMostReads; ++i) {
    if (recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT) <= 0) return;
  }
}

}  // namespace tfjob::collectives
