#include "operator/kube/client/line_splitter.h"

#include <utility>

#include "operator/kube/rest/transport.h"

namespace tfjob::kube {

Status LineSplitter::Emit(std::string_view text, const LineHandler& line) const {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  if (text.empty()) return OkStatus();
  if (text.size() > max_line_bytes_) return TooLong();
  return line(text);
}

Status LineSplitter::TooLong() const {
  return InvalidArgument("a line of more than ", max_line_bytes_, " bytes");
}

Status LineSplitter::Add(const std::string& piece, const LineHandler& line) {
  size_t begin = 0;
  if (!carry_.empty()) {
    // Append the next part of an incomplete line to carry_, so that the line is contiguous.
    const size_t end = piece.find('\n');
    carry_.append(piece, 0, end);
    if (carry_.size() > max_line_bytes_ + 1) return TooLong();
    if (end == std::string::npos) return OkStatus();
    carry_.reserve(carry_.size() + kReadPadding);
    const std::string whole = std::exchange(carry_, {});
    RETURN_IF_ERROR(Emit(whole, line));
    begin = end + 1;
  }
  for (size_t end = piece.find('\n', begin); end != std::string::npos;
       end = piece.find('\n', begin)) {
    RETURN_IF_ERROR(Emit(std::string_view(piece).substr(begin, end - begin), line));
    begin = end + 1;
  }
  carry_.assign(piece, begin);
  return carry_.size() > max_line_bytes_ + 1 ? TooLong() : OkStatus();
}

}  // namespace tfjob::kube
