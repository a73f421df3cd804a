// Asks a process, or a part of it, to stop. A signal (or a test) makes the request. Loops check for
// a request between units of work; waits return early.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"

namespace tfjob {

// Thread-safe. Request() may be called from a signal handler. A request is never withdrawn.
class StopSource {
 public:
  StopSource();
  ~StopSource();
  StopSource(const StopSource&) = delete;
  StopSource& operator=(const StopSource&) = delete;

  // `signal_number` is the reason. If there are several requests, the reason of the first is kept.
  void Request(int signal_number);

  bool requested() const { return signal() != 0; }
  // Returns the reason of the request; 0 if there is none.
  int signal() const { return signal_.load(std::memory_order_acquire); }
  // Waits until a stop is requested or `timeout` has passed. Returns requested().
  bool WaitFor(Duration timeout) const;

 private:
  std::atomic<int> signal_{0};
  int event_;  // readable once a stop is requested
};

// Makes SIGTERM and SIGINT request a stop of `source`. The first signal of either kind requests the
// stop; the same signal a second time ends the process at once, by the signal's default action.
// Call it once, before threads start. `source` must live as long as the process.
void StopOnSignals(StopSource& source);

}  // namespace tfjob
