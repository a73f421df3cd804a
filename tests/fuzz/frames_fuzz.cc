// Checks the reader of frames with arbitrary bytes.
//   - Reading never crashes, and does not allocate memory merely because the bytes claim a size.
//   - The result does not depend on the pieces in which a frame arrives.
//   - A frame that is accepted is written back as the same bytes.
//   - A socket delivers the same frame, complete and with nothing added.
#include <sys/socket.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/rpc/frame.h"
#include "runtime/rpc/socket_transport.h"

namespace tfjob::fuzz {
namespace {

rpc::IncomingFrame InPieces(std::string_view bytes, size_t size) {
  rpc::IncomingFrame frame;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    frame.pieces.push_back(std::as_bytes(std::span(bytes.substr(0, size))));
  }
  return frame;
}

// Returns the bytes of the frame when it is written again.
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

// Sends `bytes` through a socket. Checks that a frame that arrives has the payload that was sent,
// that a failure has the status of a broken or malformed stream, and that a frame arrives if
// `is_one_frame`.
void CheckSocket(std::string_view bytes, bool is_one_frame) {
  int ends[2] = {-1, -1};
  ENFORCE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  rpc::SocketTransport near{wire::UniqueFd(ends[0])};
  wire::UniqueFd far{ends[1]};
  const ssize_t sent = send(far.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (!bytes.empty() && sent != static_cast<ssize_t>(bytes.size())) return;  // the bytes do not fit
  far.Close();
  rpc::IncomingFrame frame;
  Status status = near.BeginRead(frame);
  // Receive the beginning into separate memory, and the remaining bytes into the memory of the
  // frame.
  std::string begin(std::min<size_t>(frame.remaining(), 7), '\0');
  if (status.ok()) status = frame.Receive(std::as_writable_bytes(std::span(begin)));
  if (status.ok()) status = frame.Load();
  ENFORCE(status.ok() || absl::IsDataLoss(status) || absl::IsUnavailable(status),
          "a stream breaks, or is not one of frames");
  if (is_one_frame) ENFORCE(status.ok(), "a frame arrives");
  if (!status.ok()) return;
  const std::string payload = begin + frame.ReadString(frame.remaining());
  const size_t prefix = rpc::kHeaderBytes + frame.segments.size() * rpc::kSegmentBytes;
  ENFORCE(bytes.substr(prefix, payload.size()) == payload, "the payload is what was sent");
}

void CheckFrame(std::string_view bytes) {
  rpc::IncomingFrame whole = InPieces(bytes, bytes.size());
  rpc::IncomingFrame pieces = InPieces(bytes, 5);
  const Status status = whole.Parse();
  ENFORCE(pieces.Parse() == status, "pieces must not change whether a frame is accepted");
  CheckSocket(bytes, status.ok());
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
