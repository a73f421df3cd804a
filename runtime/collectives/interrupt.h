// Lets a caller end the waits of functions that connect ranks with each other.
#pragma once

#include <functional>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::collectives {

// Asked several times per second during a wait, on the thread that waits. An error ends the wait
// with this error. May be null: then nothing but the deadline ends it.
using Interrupt = std::function<Status()>;

inline constexpr Duration kInterruptPoll{100ms};

inline Status Ask(const Interrupt& interrupt) {
  return interrupt ? interrupt() : OkStatus();
}

}  // namespace tfjob::collectives
