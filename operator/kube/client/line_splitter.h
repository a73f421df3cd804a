// Splits a byte stream that arrives in pieces into lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

// Splits one stream. Not thread-safe.
class LineSplitter {
 public:
  // Lines of more than `max_line_bytes` are an error.
  explicit LineSplitter(size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  using LineHandler = std::function<Status(std::string_view)>;
  // Calls `line` for each line that is now complete, without its terminator ("\n" or "\r\n"). Skips
  // empty lines. kReadPadding bytes after each line are readable, so `piece` must have kReadPadding
  // bytes of spare capacity, as strings returned by HttpStream::Read do. Stops at the first error
  // that `line` returns. Do not use the splitter after an error.
  Status Add(const std::string& piece, const LineHandler& line);

  // Returns true if the bytes received so far end in the middle of a line.
  bool within_line() const { return !carry_.empty(); }

 private:
  Status Emit(std::string_view text, const LineHandler& line) const;
  Status TooLong() const;

  const size_t max_line_bytes_;
  std::string carry_;  // the beginning of an incomplete line
};

}  // namespace tfjob::kube
