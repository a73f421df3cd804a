// What travels on a stream: frames of a fixed header and any number of segments, each a run of
// bytes with its place. Tensor bytes are never copied into a protobuf message.
//
// Wire format, little-endian (one gRPC message, or one entry of another transport):
//   header   32 bytes: u16 type, u16 flags, u32 segment count, u64 sequence, i64 step, i64 value
//   table    24 bytes a segment: u32 index, u32 flags, u64 offset, u64 length
//   payload  the segments' bytes, one after the other
// type, flags, sequence, step, value, index and offset mean what the service says; types from
// 0xFF00 on belong to the connection itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::rpc {

struct FrameHeader {
  uint16_t type = 0;
  uint16_t flags = 0;
  uint64_t sequence = 0;
  int64_t step = 0;
  int64_t value = 0;

  bool operator==(const FrameHeader&) const = default;
};

inline constexpr size_t kHeaderBytes = 32;
inline constexpr size_t kSegmentBytes = 24;
inline constexpr uint32_t kMaxSegments = 1 << 16;
// A frame's payload that is worth a message of its own: senders fill frames until they have so much,
// in segments of at most so much, so that no frame has twice as much. What is larger travels in
// several: frames that arrive are signs of life, and one must not take long.
inline constexpr size_t kFrameTargetBytes = size_t{1} << 20;

// A run of bytes to send. They must stay valid and unchanged until `release(argument)` was called,
// which happens exactly once, on any thread, also when the stream breaks; with no `release` until
// Transport::Write returns.
struct Segment {
  uint32_t index = 0;
  uint32_t flags = 0;
  uint64_t offset = 0;
  std::span<const std::byte> bytes;
  void (*release)(void*) = nullptr;
  void* argument = nullptr;
};

struct OutgoingFrame {
  FrameHeader header;
  std::vector<Segment> segments;
};

struct SegmentInfo {
  uint32_t index = 0;
  uint32_t flags = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// A frame that arrived. Its payload lies in pieces that the transport owns until the next Read, and
// is consumed front to back.
class IncomingFrame {
 public:
  FrameHeader header;
  std::vector<SegmentInfo> segments;

  size_t remaining() const { return remaining_; }
  // ENFORCEs that so many bytes remain (Parse has checked the table against the payload).
  void Read(std::span<std::byte> to);
  void Skip(size_t bytes);
  std::string ReadString(size_t bytes);

  // For transports: the pieces of the next frame; then Parse.
  std::vector<std::span<const std::byte>> pieces;
  // Reads header and table. DataLoss when the frame is shorter or longer than they say.
  Status Parse();

 private:
  size_t piece_ = 0;
  size_t position_ = 0;
  size_t remaining_ = 0;
};

// Header and table in wire form.
void AppendPrefix(const OutgoingFrame& frame, std::string& to);
size_t PayloadBytes(const OutgoingFrame& frame);

}  // namespace tfjob::rpc
