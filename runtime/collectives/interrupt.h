// Allows a caller to end the waits of functions that connect ranks to each other.
#pragma once

#include <functional>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::collectives {

// Called several times per second during a wait, on the waiting thread. If it returns an error, the
// wait ends with this error. If it is null, only the deadline ends the wait.
using Interrupt = std::function<Status()>;

inline constexpr Duration kInterruptPoll{100ms};

inline Status Ask(const Interrupt& interrupt) {
  return interrupt ? interrupt() : OkStatus();
}

}  // namespace tfjob::collectives
