// Prints the logs of several containers to one output, in whole lines.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "operator/view/console.h"
#include "runtime/base/mutex.h"

namespace tfjob::cli {

// Writes the logs to a file or a pipe as they are. On a terminal, escapes control characters.
// Thread-safe.
class LogPrinter {
 public:
  explicit LogPrinter(view::Console& console) : terminal_(console.terminal), out_(console.out) {}

  // Writes "prefix | line", or only the line if the prefix is empty. Returns false if the output
  // can no longer be written to.
  bool Print(std::string_view prefix, std::string_view line);
  bool broken();

 private:
  const bool terminal_;
  Mutex mutex_;
  std::ostream& out_ ABSL_GUARDED_BY(mutex_);
};

// Splits bytes into lines, and a line of more than 1 MiB into several. Not thread-safe.
class LineCutter {
 public:
  explicit LineCutter(std::function<bool(std::string_view)> take) : take_(std::move(take)) {}

  static constexpr size_t kLongestLine = 1 << 20;

  // Passes each complete line to `take`. Returns false as soon as `take` does.
  bool Add(std::string_view bytes);
  // Call this after the last bytes. Passes an unterminated last line to `take`.
  void Finish();
  // Removes and returns an unterminated last line; "" if there is none.
  std::string TakeRest() { return std::exchange(rest_, ""); }

 private:
  const std::function<bool(std::string_view)> take_;
  std::string rest_;
};

}  // namespace tfjob::cli
