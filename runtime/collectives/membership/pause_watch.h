// Detects whether this process has been paused (stopped, or given no CPU time) for so long that its
// peers may have considered it lost. After a pause, the process reads messages that its peers sent
// before or during the pause. These messages do not prove that the peers still follow this process.
//
// Pure: the caller passes in the time.
#pragma once

#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::collectives {

// Not thread-safe.
class PauseWatch {
 public:
  // `harmless` is the longest pause that no peer mistakes for a loss. `settles` is how long it
  // takes to read the messages that have arrived during a pause.
  PauseWatch(Duration harmless, Duration settles) : harmless_(harmless), settles_(settles) {}

  // Call often, because a long time between two calls counts as a pause.
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
