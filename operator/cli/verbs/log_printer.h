// Logs of several containers as whole lines on one output.
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

  // Writes "prefix | line", without a prefix the line alone. False when the output takes nothing
  // any more.
  bool Print(std::string_view prefix, std::string_view line);
  bool broken();

 private:
  Mutex mutex_;
  std::ostream& out_ ABSL_GUARDED_BY(mutex_);
};

// Cuts bytes into lines. One thread.
class LineCutter {
 public:
  explicit LineCutter(std::function<bool(std::string_view)> take) : take_(std::move(take)) {}

  // False when `take` refused a line.
  bool Add(std::string_view bytes);
  // What has no line end counts as a line.
  void Finish();

 private:
  const std::function<bool(std::string_view)> take_;
  std::string rest_;
};

}  // namespace tfjob::cli
