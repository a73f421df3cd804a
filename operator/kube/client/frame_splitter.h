// Splits a byte stream that arrives in pieces into frames, the form in which a watch delivers
// protobuf events. A frame consists of its length (four bytes, the most significant first) and that
// many bytes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

// Splits one stream. Not thread-safe.
class FrameSplitter {
 public:
  // Frames of more than `max_frame_bytes` are an error. The memory used depends on the bytes that
  // have arrived, not on the length that a frame claims.
  explicit FrameSplitter(size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  using FrameHandler = std::function<Status(std::string_view)>;
  // Calls `frame` for each frame that is now complete, without its length. Stops at the first error
  // that `frame` returns. Do not use the splitter after an error.
  Status Add(std::string_view piece, const FrameHandler& frame);

  // Returns true if the bytes received so far end in the middle of a frame.
  bool within_frame() const { return !carry_.empty(); }

 private:
  // Passes the complete frames at the beginning of `bytes` to `frame`, and removes them.
  Status Split(std::string_view& bytes, const FrameHandler& frame) const;
  // Returns the size in bytes, including the length field, of the frame at the beginning of
  // `bytes`; 0 if the length field has not arrived.
  StatusOr<size_t> FrameSize(std::string_view bytes) const;

  const size_t max_frame_bytes_;
  std::string carry_;  // the beginning of an incomplete frame, with its length
};

}  // namespace tfjob::kube
