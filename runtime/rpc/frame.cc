#include "runtime/rpc/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"

namespace tfjob::rpc {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is copied verbatim");

template <typename T>
void Append(T value, std::string& to) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T Take(IncomingFrame& frame) {
  T value;
  frame.Read(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace

void IncomingFrame::Read(std::span<std::byte> to) {
  ENFORCE(to.size() <= remaining_, "a frame is read within its payload");
  ENFORCE(source_ == nullptr, "a frame is read after it was loaded");
  remaining_ -= to.size();
  while (!to.empty()) {
    std::span<const std::byte> piece = pieces[piece_].subspan(position_);
    const size_t count = std::min(piece.size(), to.size());
    std::memcpy(to.data(), piece.data(), count);
    to = to.subspan(count);
    position_ += count;
    if (count == piece.size()) {
      ++piece_;
      position_ = 0;
    }
  }
}

void IncomingFrame::Skip(size_t bytes) {
  ENFORCE(bytes <= remaining_, "a frame is read within its payload");
  ENFORCE(source_ == nullptr, "a frame is read after it was loaded");
  remaining_ -= bytes;
  while (bytes > 0) {
    const size_t count = std::min(pieces[piece_].size() - position_, bytes);
    bytes -= count;
    position_ += count;
    if (position_ == pieces[piece_].size()) {
      ++piece_;
      position_ = 0;
    }
  }
}

std::string IncomingFrame::ReadString(size_t bytes) {
  std::string text(bytes, '\0');
  Read(std::as_writable_bytes(std::span(text)));
  return text;
}

Status IncomingFrame::Receive(std::span<std::byte> to) {
  if (source_ == nullptr) {
    Read(to);
    return OkStatus();
  }
  ENFORCE(to.size() <= remaining_, "a frame is read within its payload");
  remaining_ -= to.size();
  return source_->Receive(to);
}

Status IncomingFrame::Load(const std::function<Status(size_t)>& take) {
  if (source_ == nullptr) return OkStatus();
  PayloadSource& source = *std::exchange(source_, nullptr);
  piece_ = position_ = 0;
  if (const auto lent = source.Lend(remaining_); !lent.empty() || remaining_ == 0) {
    pieces.assign(1, lent);
    return OkStatus();
  }
  if (remaining_ > kFrameTargetBytes) return LoadChunks(source, take);
  if (take != nullptr) RETURN_IF_ERROR(take(remaining_));
  loaded_.resize(remaining_);
  RETURN_IF_ERROR(source.Receive(loaded_));
  pieces.assign(1, loaded_);
  return OkStatus();
}

// Allocates memory piece by piece as the bytes arrive, so that a peer cannot exhaust memory by
// announcing bytes that it does not send.
Status IncomingFrame::LoadChunks(PayloadSource& source, const std::function<Status(size_t)>& take) {
  pieces.clear();
  for (size_t loaded = 0; loaded < remaining_;) {
    const size_t count = std::min(remaining_ - loaded, kFrameTargetBytes);
    if (take != nullptr) RETURN_IF_ERROR(take(count));
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(count));
    pieces.emplace_back(chunks_.back().get(), count);
    RETURN_IF_ERROR(source.Receive(std::span(chunks_.back().get(), count)));
    loaded += count;
  }
  return OkStatus();
}

void IncomingFrame::Drop() {
  if (chunks_.empty()) return;
  pieces.clear();
  piece_ = position_ = remaining_ = 0;
  chunks_.clear();
}

StatusOr<size_t> IncomingFrame::ParsePrefix() {
  source_ = nullptr;
  chunks_.clear();
  piece_ = position_ = remaining_ = 0;
  for (const auto& piece : pieces) remaining_ += piece.size();
  if (remaining_ < kHeaderBytes) {
    return DataLoss("a frame of ", remaining_, " bytes: shorter than its header");
  }
  header.type = Take<uint16_t>(*this);
  header.flags = Take<uint16_t>(*this);
  const uint32_t count = Take<uint32_t>(*this);
  header.sequence = Take<uint64_t>(*this);
  header.step = Take<int64_t>(*this);
  header.value = Take<int64_t>(*this);
  if (count > kMaxSegments || remaining_ < count * kSegmentBytes) {
    return DataLoss("a frame of ", count, " segments in ", remaining_, " bytes");
  }
  segments.clear();
  uint64_t payload = 0;
  for (uint32_t i = 0; i < count; ++i) {
    SegmentInfo info;
    info.index = Take<uint32_t>(*this);
    info.flags = Take<uint32_t>(*this);
    info.offset = Take<uint64_t>(*this);
    info.length = Take<uint64_t>(*this);
    // Check every length, so that the sum cannot overflow.
    if (info.length > kMaxFrameBytes) return DataLoss("a segment of ", info.length, " bytes");
    payload += info.length;
    segments.push_back(info);
  }
  if (payload > kMaxFrameBytes - kHeaderBytes - count * kSegmentBytes) {
    return DataLoss("a frame with ", payload, " bytes of payload: at most ", kMaxFrameBytes,
                    " bytes are possible");
  }
  return static_cast<size_t>(payload);
}

Status IncomingFrame::Parse() {
  ASSIGN_OR_RETURN(const size_t payload, ParsePrefix());
  if (payload != remaining_) {
    return DataLoss("a frame of ", remaining_, " payload bytes, announced as ", payload);
  }
  return OkStatus();
}

void IncomingFrame::Await(size_t payload, PayloadSource& source) {
  ENFORCE(remaining_ == 0, "the pieces are the header and the table");
  pieces.clear();
  piece_ = position_ = 0;
  remaining_ = payload;
  source_ = &source;
}

StatusOr<size_t> PrefixBytes(std::span<const std::byte, kHeaderBytes> header) {
  uint32_t count = 0;
  std::memcpy(&count, header.data() + 4, sizeof count);
  if (count > kMaxSegments) return DataLoss("a frame of ", count, " segments");
  return kHeaderBytes + count * kSegmentBytes;
}

void AppendPrefix(const OutgoingFrame& frame, std::string& to) {
  Append(frame.header.type, to);
  Append(frame.header.flags, to);
  Append(static_cast<uint32_t>(frame.segments.size()), to);
  Append(frame.header.sequence, to);
  Append(frame.header.step, to);
  Append(frame.header.value, to);
  for (const Segment& segment : frame.segments) {
    Append(segment.index, to);
    Append(segment.flags, to);
    Append(segment.offset, to);
    Append(static_cast<uint64_t>(segment.bytes.size()), to);
  }
}

size_t PayloadBytes(const OutgoingFrame& frame) {
  size_t bytes = 0;
  for (const Segment& segment : frame.segments) bytes += segment.bytes.size();
  return bytes;
}

}  // namespace tfjob::rpc
