// Checks the reader of frames for arbitrary bytes.
//   - Reading never crashes, and does not allocate memory merely because the bytes ask for it.
//   - The result does not depend on the pieces in which a frame arrives.
//   - A frame that was accepted is written as the same bytes.
#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/rpc/frame.h"

namespace tfjob::fuzz {
namespace {

rpc::IncomingFrame InPieces(std::string_view bytes, size_t size) {
  rpc::IncomingFrame frame;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    frame.pieces.push_back(std::as_bytes(std::span(bytes.substr(0, size))));
  }
  return frame;
}

// Writes the frame again.
std::string Written(rpc::IncomingFrame& frame) {
  rpc::OutgoingFrame out{.header = frame.header, .segments = {}};
  std::vector<std::string> payload;
  payload.reserve(frame.segments.size());
  for (const rpc::SegmentInfo& segment : frame.segments) {
    payload.push_back(frame.ReadString(segment.length));
    out.segments.push_back({.index = segment.index,
                            .flags = segment.flags,
                            .offset = segment.offset,
                            .bytes = std::as_bytes(std::span(payload.back()))});
  }
  std::string bytes;
  rpc::AppendPrefix(out, bytes);
  ENFORCE(rpc::PayloadBytes(out) + bytes.size() <= rpc::kMaxFrameBytes, "a frame has a limit");
  for (const std::string& part : payload) bytes += part;
  return bytes;
}

void CheckFrame(std::string_view bytes) {
  rpc::IncomingFrame whole = InPieces(bytes, bytes.size());
  rpc::IncomingFrame pieces = InPieces(bytes, 5);
  const Status status = whole.Parse();
  ENFORCE(pieces.Parse() == status, "pieces must not change whether a frame is accepted");
  if (!status.ok()) return;
  size_t length = 0;
  for (const rpc::SegmentInfo& segment : whole.segments) length += segment.length;
  ENFORCE(whole.remaining() == length, "the payload must be as long as the table says");
  ENFORCE(Written(whole) == bytes, "a frame must be written as the same bytes");
  ENFORCE(Written(pieces) == bytes, "a frame in pieces must be written as the same bytes");
  ENFORCE(pieces.remaining() == 0, "the whole payload must be read");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckFrame({reinterpret_cast<const char*>(data), size});
  return 0;
}
