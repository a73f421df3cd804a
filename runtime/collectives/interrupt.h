// Allows a caller to interrupt functions that wait while they connect ranks to each other.
#pragma once

#include <functional>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::collectives {

// Called several times per second during a wait, on the waiting thread. If it returns an error, the
// wait fails with this error. If it is null, only the deadline limits the wait.
using Interrupt = std::function<Status()>;

inline constexpr Duration kInterruptPoll{100ms};

inline Status Ask(const Interrupt& interrupt) {
  return interrupt ? interrupt() : OkStatus();
}

}  // namespace tfjob::collectives
