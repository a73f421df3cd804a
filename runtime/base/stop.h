// Asks a process, or a part of it, to stop. A signal (or a test) makes the request; loops check for
// it between two units of work, and waits return early.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"

namespace tfjob {

// Thread-safe, and safe to request from a signal handler. A request is never withdrawn.
class StopSource {
 public:
  StopSource();
  ~StopSource();
  StopSource(const StopSource&) = delete;
  StopSource& operator=(const StopSource&) = delete;

  // `signal_number` is the reason; the first request's counts.
  void Request(int signal_number);

  bool requested() const { return signal() != 0; }
  // The signal number of the request; 0 if there is none.
  int signal() const { return signal_.load(std::memory_order_acquire); }
  // Waits until a stop is requested or `timeout` has passed. Returns requested().
  bool WaitFor(Duration timeout) const;

 private:
  std::atomic<int> signal_{0};
  int event_;  // readable once a stop is requested
};

// Makes SIGTERM and SIGINT request a stop of `source`. A second signal ends the process at once,
// with the signal's default action. Call once, before threads start; `source` must live as long
// as the process.
void StopOnSignals(StopSource& source);

}  // namespace tfjob
