// Defines frames, the units sent on a stream. A frame consists of a fixed-size header and segments.
// Each segment is a run of bytes with an index and an offset, which identify the destination of the
// bytes. Tensor bytes are never copied into a protobuf message.
//
// Wire format, little-endian (frames follow each other on a socket without a gap; in a pipe, a
// frame is one entry of the queue):
//   header   32 bytes: u16 type, u16 flags, u32 segment count, u64 sequence, i64 step, i64 value
//   table    24 bytes per segment: u32 index, u32 flags, u64 offset, u64 length
//   payload  the segments' bytes, in order
// The service defines the meaning of type, flags, sequence, step, value, index and offset. Types
// from 0xFF00 up are reserved for the connection and the handshake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
// The size of the largest frame that a task accepts, including header and table. The limit also
// applies to a peer that has not yet identified itself. Only text (a job's definition, a ledger)
// approaches this size.
inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;
// The payload size at which a frame is full. Senders append segments of at most this size until the
// payload reaches it, so a payload is always smaller than twice this size. A larger payload is sent
// in several frames: each arriving frame shows that the peer is alive, so no single frame may take
// long.
inline constexpr size_t kFrameTargetBytes = size_t{1} << 20;
// A frame with this many segments is also full, however few bytes it has. The value is far below
// kMaxSegments, because each segment adds kSegmentBytes to the table.
inline constexpr size_t kFrameTargetSegments = size_t{1} << 12;

// A run of bytes to send. The bytes must stay valid and unchanged until `release(argument)` is
// called, which happens exactly once, on any thread, even if the stream breaks. If `release` is
// null, the bytes must stay valid and unchanged only until Transport::Write returns.
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

// Delivers the payload of a frame while it arrives. Implemented by transports.
class PayloadSource {
 public:
  virtual ~PayloadSource() = default;
  // Fills `to` with the next bytes of the payload; blocks until they have arrived. Returns
  // Unavailable if the stream breaks.
  virtual Status Receive(std::span<std::byte> to) = 0;
  // If the transport's memory contains the next `bytes` bytes of the payload, returns them and
  // counts them as received. Otherwise, returns an empty span. The bytes stay valid until the
  // transport's next Read.
  virtual std::span<const std::byte> Lend(size_t bytes) = 0;
};

// A received frame. Its bytes belong to the transport and stay valid until the transport's next
// Read. The payload is read from front to back.
//
// The payload of a frame that Transport::BeginRead returns may not have arrived completely. Such a
// frame must be received in place (Receive), or loaded first (Load). All other frames are already
// loaded.
class IncomingFrame {
 public:
  FrameHeader header;
  std::vector<SegmentInfo> segments;

  size_t remaining() const { return remaining_; }
  // Read, Skip and ReadString consume the next bytes of the payload. They ENFORCE that enough bytes
  // remain and that the frame is loaded. Parse has checked that the payload has the length stated
  // in the table.
  void Read(std::span<std::byte> to);
  void Skip(size_t bytes);
  std::string ReadString(size_t bytes);

  // Like Read, but for any frame. Bytes that have not arrived yet are written directly to `to`.
  // Returns Unavailable, with some bytes of `to` overwritten, if the stream breaks; the frame is
  // then incomplete, and no further bytes can be read from it.
  Status Receive(std::span<std::byte> to);
  // Waits until the whole payload has arrived, and stores it in memory that grows as the bytes
  // arrive. Before this memory grows by `bytes`, Load calls `take`, if any, and returns its error.
  // Returns Unavailable if the stream breaks.
  Status Load(const std::function<Status(size_t bytes)>& take = nullptr);
  // Frees the memory of a large payload. No further bytes can then be read from it.
  void Drop();

  // For transports: set `pieces` to the bytes of the next frame, then call Parse.
  std::vector<std::span<const std::byte>> pieces;
  // Reads the header and the table. Returns DataLoss if the frame is shorter or longer than the
  // table states, or has too many segments.
  Status Parse();
  // For transports that return a frame before its payload has arrived: set `pieces` to the header
  // and the table, call ParsePrefix, which returns the payload's length, and then call Await with
  // the payload's source. The limits are those of Parse and kMaxFrameBytes.
  StatusOr<size_t> ParsePrefix();
  void Await(size_t payload, PayloadSource& source);

 private:
  size_t piece_ = 0;
  size_t position_ = 0;
  size_t remaining_ = 0;
  PayloadSource* source_ = nullptr;  // source of the remaining bytes; null if they are in `pieces`
  Status LoadChunks(PayloadSource& source, const std::function<Status(size_t)>& take);

  std::vector<std::byte> loaded_;                     // a payload of at most kFrameTargetBytes
  std::vector<std::unique_ptr<std::byte[]>> chunks_;  // a larger payload
};

// Computes the length of a frame's header and table from the header. Returns DataLoss if there are
// too many segments.
StatusOr<size_t> PrefixBytes(std::span<const std::byte, kHeaderBytes> header);
// Appends the header and the table in wire format.
void AppendPrefix(const OutgoingFrame& frame, std::string& to);
size_t PayloadBytes(const OutgoingFrame& frame);

}  // namespace tfjob::rpc
