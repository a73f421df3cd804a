// Finds out whether this process has been paused (stopped, or given no CPU time) for so long that
// its peers may have considered it lost. When it continues, it still finds their last messages, so
// these no longer show that the peers follow it.
//
// Pure: the caller passes in the time.
#pragma once

#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::collectives {

// Not thread-safe.
class PauseWatch {
 public:
  // `harmless` is the longest pause that no peer takes for a loss. `settles` is the time in which
  // the messages that have arrived during a pause are read.
  PauseWatch(Duration harmless, Duration settles) : harmless_(harmless), settles_(settles) {}

  // Call often: a pause is a long time between two calls.
  void Note(Duration now) {
    if (noted_ && now - *noted_ > harmless_) resumed_ = now;
    noted_ = now;
  }
  // Returns whether a message that was read at this time was sent after the last pause.
  bool IsFresh(Duration read_at) const { return !resumed_ || read_at >= *resumed_ + settles_; }

 private:
  const Duration harmless_, settles_;
  std::optional<Duration> noted_;
  std::optional<Duration> resumed_;  // when the last pause ended
};

}  // namespace tfjob::collectives
