#include "tests/bench/bare_loop.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::bench {

using collectives::Slice;
using collectives::SliceOf;

namespace {
constexpr int64_t kPiece = 256 << 10;
}

BareLoop::BareLoop(int socket, int rank, std::span<std::byte> values)
    : socket_(socket), first_(rank == 0), scratch_(static_cast<size_t>(kPiece)) {
  const auto count = static_cast<int64_t>(values.size() / sizeof(float));
  const Slice own = SliceOf(count, rank, 2), other = SliceOf(count, 1 - rank, 2);
  const int64_t bytes = std::max(own.count, other.count) * int64_t{sizeof(float)};
  pieces_ = std::max<int64_t>(1, (bytes + kPiece - 1) / kPiece);
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    own_.push_back(PieceOf(values, own, piece));
    other_.push_back(PieceOf(values, other, piece));
  }
}

void BareLoop::Run() {
  sent_ = received_ = sent_bytes_ = received_bytes_ = reduced_ = 0;
  while (sent_ < 2 * pieces_ || received_ < 2 * pieces_) {
    const bool sent = Send(), received = Receive();
    if (!sent && !received) Wait();
  }
}

std::span<std::byte> BareLoop::PieceOf(std::span<std::byte> values, Slice slice,
                                       int64_t piece) const {
  const Slice part = SliceOf(slice.count, static_cast<int>(piece), static_cast<int>(pieces_));
  return values.subspan(static_cast<size_t>(slice.begin + part.begin) * sizeof(float),
                        static_cast<size_t>(part.count) * sizeof(float));
}

BareLoop::Frame BareLoop::At(int64_t index) const {
  if (index == 0 || pieces_ == 1) return {index == 0, 0};
  if (index == 2 * pieces_ - 1) return {false, pieces_ - 1};
  return {index % 2 == 1, index % 2 == 1 ? (index + 1) / 2 : index / 2 - 1};
}

bool BareLoop::MaySend() const {
  if (sent_ == 2 * pieces_) return false;
  const Frame frame = At(sent_);
  return frame.raw || frame.piece < reduced_;
}

bool BareLoop::Send() {
  if (!MaySend()) return false;
  const Frame frame = At(sent_);
  const auto part = (frame.raw ? other_ : own_)[static_cast<size_t>(frame.piece)].subspan(
      static_cast<size_t>(sent_bytes_));
  const ssize_t count = send(socket_, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0) return false;
  sent_bytes_ += count;
  if (static_cast<size_t>(count) == part.size()) ++sent_, sent_bytes_ = 0;
  return true;
}

bool BareLoop::Receive() {
  if (received_ == 2 * pieces_) return false;
  const Frame frame = At(received_);
  const std::span<std::byte> own = own_[static_cast<size_t>(frame.piece)];
  const std::span<std::byte> place =
      frame.raw ? std::span(scratch_).first(own.size()) : other_[static_cast<size_t>(frame.piece)];
  const auto part = place.subspan(static_cast<size_t>(received_bytes_));
  const ssize_t count = part.empty() ? 0 : recv(socket_, part.data(), part.size(), MSG_DONTWAIT);
  if (count < 0) return false;
  ENFORCE(count > 0 || part.empty(), "the other rank has ended");
  received_bytes_ += count;
  if (static_cast<size_t>(count) < part.size()) return true;
  ++received_;
  received_bytes_ = 0;
  if (!frame.raw) return true;
  ++reduced_;
  collectives::Combine(DType::kFloat32, collectives::Reduction::kSum, own, first_ ? own : place,
                       first_ ? place : own);
  return true;
}

void BareLoop::Wait() const {
  pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
  if (MaySend()) entry.events |= POLLOUT;
  poll(&entry, 1, -1);
}

}  // namespace tfjob::bench
