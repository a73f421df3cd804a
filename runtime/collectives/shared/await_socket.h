// Waits until a socket is ready. The wait can be interrupted (interrupt.h).
#pragma once

#include <algorithm>

#include "runtime/collectives/interrupt.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

// Like wire::AwaitSocket, returns true when the socket is ready, and false at the deadline. If
// `interrupt` returns an error, returns that error.
inline StatusOr<bool> AwaitSocket(int fd, short events, Duration deadline,
                                  const Interrupt& interrupt) {
  while (true) {
    RETURN_IF_ERROR(Ask(interrupt));
    const Duration now = RealClock().Monotonic();
    if (now >= deadline) return false;
    if (wire::AwaitSocket(fd, events, std::min(deadline, now + kInterruptPoll))) return true;
  }
}

}  // namespace tfjob::collectives
