// Defines requests for a process, or a part of it, to stop. A request comes from a signal or from a
// test. Loops check for a request between units of work, and waits return early.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob {

// A flag that one thread sets and another thread waits for. StopSource::WaitFor waits for the flag
// or a stop request, whichever comes first. The flag stays set until it is cleared. Thread-safe.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Set();
  void Clear();
  // Waits until the flag is set or `timeout` has passed.
  void WaitFor(Duration timeout) const;

 private:
  friend class StopSource;
  int descriptor_;  // readable while the flag is set
};

// A request to stop, which cannot be withdrawn. Thread-safe. Request() may be called from a signal
// handler.
class StopSource {
 public:
  StopSource();
  ~StopSource();
  StopSource(const StopSource&) = delete;
  StopSource& operator=(const StopSource&) = delete;

  // Requests a stop, with a signal number as the reason. If there are several requests, the first
  // reason is kept.
  void Request(int signal_number);

  bool requested() const { return signal() != 0; }
  // Returns the signal number of the first request, or 0 if there has been no request.
  int signal() const { return signal_.load(std::memory_order_acquire); }
  // Waits until a stop is requested or `timeout` has passed. Returns requested().
  bool WaitFor(Duration timeout) const;
  // Like the overload above, but also returns when `event` is set.
  bool WaitFor(Duration timeout, const Event& event) const;

 private:
  std::atomic<int> signal_{0};
  int event_;  // readable once a stop is requested
};

// Makes SIGTERM and SIGINT request a stop of `source`. The first signal of either kind requests the
// stop; if the same signal arrives again, its default action terminates the process at once. Call
// it once, before threads start. `source` must exist until the process exits.
void StopOnSignals(StopSource& source);

// Does the same as StopOnSignals for a library, which does not own the process. Applies only while
// an object of this class exists, and only to signals whose action is the default action. If
// several objects exist, in any threads, a signal requests a stop of all of them. A new object
// starts without a request. If a signal interrupts one of the program's system calls, the call is
// restarted if the system supports that (SA_RESTART). StopOnSignals must not be used in the same
// process.
class ScopedStopOnSignals {
 public:
  ScopedStopOnSignals();
  // When the last object is destroyed, restores the default actions, unless the program has set
  // other actions in the meantime.
  ~ScopedStopOnSignals();
  ScopedStopOnSignals(const ScopedStopOnSignals&) = delete;
  ScopedStopOnSignals& operator=(const ScopedStopOnSignals&) = delete;

  const StopSource& source() const { return *source_; }

 private:
  StopSource* const source_;  // exists until the process exits
  int slot_ = -1;             // its place in the table that the signal handler reads
};

// Returns the number of the last signal that has requested a stop of this process, or 0.
int LastStopSignal();

// Returns the exit code of a task with this final status (docs/errors.md): 0 for OK; 128 plus the
// signal's number if the task was asked to stop; 138 if a retry may help; 2 if the input is wrong;
// otherwise 1.
int ExitCode(const Status& status, const StopSource& stop);

}  // namespace tfjob
