#include "operator/kube/client/frame_splitter.h"

#include <algorithm>
#include <utility>

namespace tfjob::kube {
namespace {

constexpr size_t kLengthBytes = 4;

}  // namespace

StatusOr<size_t> FrameSplitter::FrameSize(std::string_view bytes) const {
  if (bytes.size() < kLengthBytes) return size_t{0};
  size_t length = 0;
  for (const char byte : bytes.substr(0, kLengthBytes)) {
    length = length << 8 | static_cast<unsigned char>(byte);
  }
  if (length <= max_frame_bytes_) return kLengthBytes + length;
  return InvalidArgument("a frame of ", length, " bytes; at most ", max_frame_bytes_,
                         " are allowed");
}

Status FrameSplitter::Split(std::string_view& bytes, const FrameHandler& frame) const {
  while (true) {
    ASSIGN_OR_RETURN(const size_t size, FrameSize(bytes));
    if (size == 0 || bytes.size() < size) return OkStatus();
    RETURN_IF_ERROR(frame(bytes.substr(kLengthBytes, size - kLengthBytes)));
    bytes.remove_prefix(size);
  }
}

Status FrameSplitter::Add(std::string_view piece, const FrameHandler& frame) {
  // Complete the frame in carry_: first its length, then its content.
  while (!carry_.empty() && !piece.empty()) {
    ASSIGN_OR_RETURN(const size_t size, FrameSize(carry_));
    const size_t wanted = (size == 0 ? kLengthBytes : size) - carry_.size();
    const size_t taken = std::min(wanted, piece.size());
    carry_.append(piece.substr(0, taken));
    piece.remove_prefix(taken);
    std::string_view bytes = carry_;
    RETURN_IF_ERROR(Split(bytes, frame));
    if (bytes.empty()) carry_ = std::string();
  }
  if (piece.empty()) return OkStatus();
  RETURN_IF_ERROR(Split(piece, frame));
  carry_ = piece;
  return OkStatus();
}

}  // namespace tfjob::kube
