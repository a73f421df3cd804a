// Cuts a byte stream that comes in pieces into lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

// Not thread-safe.
class LineSplitter {
 public:
  // Longer lines are an error.
  explicit LineSplitter(size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  using LineHandler = std::function<Status(std::string_view)>;
  // Calls `line` with each line that is complete by now, without its end ("\n" or "\r\n") and
  // without empty ones; kReadPadding bytes behind it may be read. Ends with the first error of
  // `line`, after which this is of no more use. `piece` must have kReadPadding bytes of spare
  // capacity, as those of HttpStream::Read do.
  Status Add(const std::string& piece, const LineHandler& line);

  // Whether the bytes so far end within a line.
  bool within_line() const { return !carry_.empty(); }

 private:
  Status Emit(std::string_view text, const LineHandler& line) const;
  Status TooLong() const;

  const size_t max_line_bytes_;
  std::string carry_;  // the beginning of a line
};

}  // namespace tfjob::kube
