// Defines the error that ends a run in all of its tasks: a loss or a gradient was not finite, so
// every restart would end in the same way. The task that finds the error tells the parameter
// servers, which tell the others. The chief records it in the run's folder, so that restarted tasks
// end with the same message.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::state {

// Returns the error, with PlainWords(words) as its message. The runtime uses its code, OutOfRange,
// for no other error.
Status RunFailure(std::string_view words);
bool IsRunFailure(const Status& status);

// Returns `words` as one line of printable ASCII, truncated to kMaxFailureBytes. The words come
// from other tasks and from files, and go to logs and termination messages.
std::string PlainWords(std::string_view words);
inline constexpr size_t kMaxFailureBytes = 1000;

}  // namespace tfjob::state
