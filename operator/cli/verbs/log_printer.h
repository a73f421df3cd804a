// Prints the logs of several containers to one output, in whole lines.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "runtime/base/mutex.h"

namespace tfjob::cli {

// Thread-safe.
class LogPrinter {
 public:
  explicit LogPrinter(std::ostream& out) : out_(out) {}

  // Writes "prefix | line", or only the line if the prefix is empty. Returns false if the output
  // can no longer be written to.
  bool Print(std::string_view prefix, std::string_view line);
  bool broken();

 private:
  Mutex mutex_;
  std::ostream& out_ ABSL_GUARDED_BY(mutex_);
};

// Splits bytes into lines. Not thread-safe.
class LineCutter {
 public:
  explicit LineCutter(std::function<bool(std::string_view)> take) : take_(std::move(take)) {}

  // Passes each complete line to `take`. Returns false as soon as `take` does.
  bool Add(std::string_view bytes);
  // Passes an unterminated last line to `take`.
  void Finish();

 private:
  const std::function<bool(std::string_view)> take_;
  std::string rest_;
};

}  // namespace tfjob::cli
