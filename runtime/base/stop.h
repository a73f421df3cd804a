// The wish that a process, or a part of it, comes to an end: asked for by a signal (or by a test), seen by loops between
// two pieces of work and by whoever waits.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"

namespace tfjob {

// Thread-safe, and safe to ask for in a signal handler. Once asked for, it stays so.
class StopSource {
 public:
  StopSource();
  ~StopSource();
  StopSource(const StopSource&) = delete;
  StopSource& operator=(const StopSource&) = delete;

  // `signal_number` says why; the first one counts.
  void Request(int signal_number);

  bool requested() const { return signal() != 0; }
  // The number that was asked with, 0 when nobody asked.
  int signal() const { return signal_.load(std::memory_order_acquire); }
  // Waits until it is asked for, at most so long. Returns requested().
  bool WaitFor(Duration timeout) const;

 private:
  std::atomic<int> signal_{0};
  int event_;  // readable once asked for
};

// From now on SIGTERM and SIGINT ask `source`; a second one ends the process at once, with the signal's own effect. Call
// once, before threads start; `source` lives as long as the process.
void StopOnSignals(StopSource& source);

}  // namespace tfjob
