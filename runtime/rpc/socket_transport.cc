#include "runtime/rpc/socket_transport.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace tfjob::rpc {
namespace {

// The size up to which copying a payload costs less than passing it to the kernel as a separate
// part.
constexpr size_t kCopiedBytes = 4096;
constexpr size_t kBufferBytes = size_t{64} << 10;
// The number of bytes to read at once while waiting for a header. It is small, because payload
// bytes that are read ahead are copied once more.
constexpr size_t kReadAheadBytes = size_t{16} << 10;
// A payload range of at least this size is received in place; smaller ranges are received many at a
// time.
constexpr size_t kInPlaceBytes = size_t{16} << 10;
// The maximum number of bytes that one call receives. Only the return of a call shows that the peer
// is alive, so even a slow network must deliver this many bytes within a lease.
constexpr size_t kCallBytes = size_t{64} << 10;
constexpr int kKeepAliveSeconds = 20, kKeepAliveProbes = 2, kKeepAliveInterval = 5;

Status Closed(int error) {
  const bool plain = error == 0 || error == EPIPE || error == ECONNRESET;
  return plain ? Unavailable("the connection is closed")
               : Unavailable("the connection is closed: ", std::strerror(error));
}

}  // namespace

SocketTransport::SocketTransport(wire::UniqueFd socket)
    : socket_(std::move(socket)), buffer_(kBufferBytes) {
  const int fd = socket_.get();
  (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  // Ignore errors: the options only improve the detection of a lost machine, which the watch for
  // silent peers also detects.
  const int on = 1;
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof kKeepAliveProbes);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveInterval, sizeof kKeepAliveInterval);
}

SocketTransport::~SocketTransport() {
  Cancel();
  ReleaseAll();
  // Closing a socket with unread bytes resets the connection, and the peer may then lose bytes that
  // it has not read. Therefore, read the unread bytes if they are few (a heartbeat, a request). If
  // there are more, the peer may be waiting for space in this socket's buffer, and only a reset
  // ends its wait.
  int unread = 0;
  if (ioctl(socket_.get(), FIONREAD, &unread) == 0 && unread <= static_cast<int>(kReadAheadBytes)) {
    (void)recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  }
}

void SocketTransport::Cancel() {
  // Shut the socket down, which wakes the threads that are blocked in calls on it. The descriptor
  // stays open until these calls have returned.
  (void)shutdown(socket_.get(), SHUT_RDWR);
}

// ---- writing

Status SocketTransport::Write(const OutgoingFrame& frame) {
  Begin(frame);
  return WriteRest();
}

StatusOr<bool> SocketTransport::TryWrite(const OutgoingFrame& frame) {
  Begin(frame);
  return SendParts(MSG_DONTWAIT);
}

Status SocketTransport::WriteRest() {
  return SendParts(0).status();
}

void SocketTransport::Begin(const OutgoingFrame& frame) {
  prefix_.clear();
  parts_.clear();
  next_part_ = 0;
  AppendPrefix(frame, prefix_);
  const bool copies = PayloadBytes(frame) <= kCopiedBytes;
  for (const Segment& segment : frame.segments) {
    if (segment.release != nullptr) releases_.emplace_back(segment.release, segment.argument);
    if (!copies || segment.bytes.empty()) continue;
    prefix_.append(reinterpret_cast<const char*>(segment.bytes.data()), segment.bytes.size());
  }
  parts_.push_back({prefix_.data(), prefix_.size()});
  if (copies) return ReleaseAll();
  for (const Segment& segment : frame.segments) {
    if (segment.bytes.empty()) continue;
    // sendmsg does not modify the bytes that it sends.
    parts_.push_back({const_cast<std::byte*>(segment.bytes.data()), segment.bytes.size()});
  }
}

StatusOr<bool> SocketTransport::SendParts(int flags) {
  while (next_part_ < parts_.size()) {
    msghdr message{};
    message.msg_iov = &parts_[next_part_];
    message.msg_iovlen = std::min<size_t>(parts_.size() - next_part_, IOV_MAX);
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | flags);
    if (sent >= 0) {
      Advance(static_cast<size_t>(sent));
    } else if (errno == EAGAIN && (flags & MSG_DONTWAIT) != 0) {
      return false;
    } else if (errno != EINTR) {
      const int error = errno;
      ReleaseAll();
      return Closed(error);
    }
  }
  ReleaseAll();
  return true;
}

void SocketTransport::Advance(size_t bytes) {
  while (bytes > 0) {
    iovec& part = parts_[next_part_];
    const size_t count = std::min(bytes, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + count;
    part.iov_len -= count;
    bytes -= count;
    if (part.iov_len == 0) ++next_part_;
  }
}

void SocketTransport::ReleaseAll() {
  for (const auto& [release, argument] : releases_) release(argument);
  releases_.clear();
}

// ---- reading

Status SocketTransport::Read(IncomingFrame& frame) {
  RETURN_IF_ERROR(BeginRead(frame));
  return frame.Load();
}

Status SocketTransport::BeginRead(IncomingFrame& frame) {
  RETURN_IF_ERROR(broken_);
  RETURN_IF_ERROR(SkipPayload());
  RETURN_IF_ERROR(Fill(kHeaderBytes));
  ASSIGN_OR_RETURN(const size_t prefix,
                   PrefixBytes(std::span(buffer_).subspan(begin_).first<kHeaderBytes>()));
  if (const size_t segments = (prefix - kHeaderBytes) / kSegmentBytes; segments > most_segments_) {
    return DataLoss("a handshake of ", segments, " segments");
  }
  if (prefix <= buffer_.size()) {
    RETURN_IF_ERROR(Fill(prefix));
    frame.pieces.assign(1, std::span(buffer_).subspan(begin_, prefix));
    begin_ += prefix;
  } else {
    RETURN_IF_ERROR(ReceivePrefix(prefix));
    frame.pieces.assign(1, large_prefix_);
  }
  ASSIGN_OR_RETURN(payload_, frame.ParsePrefix());
  frame.Await(payload_, *this);
  return OkStatus();
}

// Allocates memory piece by piece as the bytes arrive, so that a peer cannot exhaust memory by
// announcing bytes that it does not send.
Status SocketTransport::ReceivePrefix(size_t bytes) {
  large_prefix_.clear();
  payload_ = bytes;
  while (payload_ > 0) {
    const size_t have = large_prefix_.size();
    large_prefix_.resize(have + std::min(payload_, kBufferBytes));
    RETURN_IF_ERROR(Receive(std::span(large_prefix_).subspan(have)));
  }
  return OkStatus();
}

Status SocketTransport::Fill(size_t bytes) {
  if (buffered() >= bytes) return OkStatus();
  std::memmove(buffer_.data(), buffer_.data() + begin_, buffered());
  end_ -= begin_;
  begin_ = 0;
  while (end_ < bytes) {
    const size_t room = std::min(buffer_.size() - end_, std::max(bytes - end_, kReadAheadBytes));
    ASSIGN_OR_RETURN(const size_t count, ReceiveSome(std::span(buffer_).subspan(end_, room), 0));
    end_ += count;
  }
  return OkStatus();
}

Status SocketTransport::Receive(std::span<std::byte> to) {
  payload_ -= to.size();
  receiving_ = true;
  Status status;
  while (!to.empty() && status.ok()) {
    if (const size_t count = std::min(buffered(), to.size()); count > 0) {
      std::memcpy(to.data(), buffer_.data() + begin_, count);
      begin_ += count;
      to = to.subspan(count);
      continue;
    }
    if (to.size() >= kInPlaceBytes) {
      const StatusOr<size_t> count =
          ReceiveSome(to.first(std::min(to.size(), kCallBytes)), MSG_WAITALL);
      status = count.status();
      to = to.subspan(count.value_or(0));
      continue;
    }
    begin_ = end_ = 0;
    const size_t room = std::min(buffer_.size(), to.size() + payload_ + kReadAheadBytes);
    const StatusOr<size_t> count = ReceiveSome(std::span(buffer_).first(room), 0);
    status = count.status();
    end_ = count.value_or(0);
  }
  receiving_ = false;
  broken_ = status;
  return status;
}

std::span<const std::byte> SocketTransport::Lend(size_t bytes) {
  if (buffered() < bytes) return {};
  const std::span<const std::byte> lent = std::span(buffer_).subspan(begin_, bytes);
  begin_ += bytes;
  payload_ -= bytes;
  return lent;
}

void SocketTransport::BeginHandshake(Duration timeout) {
  most_segments_ = 1;
  deadline_ = SteadyNow() + timeout;
}

void SocketTransport::EndHandshake() {
  most_segments_ = kMaxSegments;
  deadline_.reset();
}

Status SocketTransport::AwaitBytes() const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - SteadyNow());
    if (left.count() <= 0) return DeadlineExceeded("no answer to the handshake");
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int count = poll(&ready, 1, static_cast<int>(std::min<int64_t>(left.count(), INT_MAX)));
    if (count > 0) return OkStatus();
    if (count < 0 && errno != EINTR) return Closed(errno);
  }
}

StatusOr<size_t> SocketTransport::ReceiveSome(std::span<std::byte> to, int flags) {
  if (deadline_) {
    RETURN_IF_ERROR(AwaitBytes());
    flags &= ~MSG_WAITALL;  // with MSG_WAITALL, the call could exceed the deadline
  }
  if (receiving_) waiting_since_us_ = RealClock().Monotonic().count();
  ssize_t count = 0;
  int error = 0;
  do {
    count = recv(socket_.get(), to.data(), to.size(), flags);
    error = count < 0 ? errno : 0;
  } while (error == EINTR);
  if (receiving_) waiting_since_us_ = 0;
  if (count <= 0) return Closed(error);
  return static_cast<size_t>(count);
}

Status SocketTransport::SkipPayload() {
  while (payload_ > 0) {
    if (buffered() == 0) {
      begin_ = end_ = 0;
      const size_t room = std::min(buffer_.size(), payload_);
      ASSIGN_OR_RETURN(end_, ReceiveSome(std::span(buffer_).first(room), 0));
    }
    const size_t count = std::min(buffered(), payload_);
    begin_ += count;
    payload_ -= count;
  }
  return OkStatus();
}

Duration SocketTransport::Waiting() const {
  const int64_t since = waiting_since_us_;
  return since == 0 ? Duration(0) : RealClock().Monotonic() - Duration(since);
}

}  // namespace tfjob::rpc
