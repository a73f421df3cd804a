// Defines the error that stops a run in all of its tasks: a loss or a gradient was not finite, so
// every restart would fail in the same way. The task that detects the error notifies the parameter
// servers, which notify the other tasks. The chief records the error in the run's folder, so that
// restarted tasks fail with the same message.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::state {

// Returns the error, with PlainWords(words) as its message. No other error of the runtime has its
// code, OutOfRange.
Status RunFailure(std::string_view words);
bool IsRunFailure(const Status& status);

// Returns `words` as one line of printable ASCII, truncated to kMaxFailureBytes. The words come
// from other tasks and from files, and are written to logs and termination messages.
std::string PlainWords(std::string_view words);
inline constexpr size_t kMaxFailureBytes = 1000;

}  // namespace tfjob::state
