// Names the phases, such as saving, in which a task of a group works but takes no steps. The other
// tasks wait for a task in such a phase longer than for a step.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/base/clock.h"

namespace tfjob::state {

enum class WorkPhase {
  kNone,  // takes steps, or waits for other tasks
  kCompiling,
  kValidating,
  kSaving,
  kRestoring,
  kReadingData,
};

// How long a task expects a phase to last, at most. A validation announces this again with every
// batch. These limits only determine from when on strategy.timeout_seconds applies.
inline constexpr Duration kUsualPhaseLimit{600s};
inline constexpr Duration kRestoreLimit{1800s};

// Returns the phase's name in messages between tasks: "saving".
std::string_view Name(WorkPhase phase);
// Parses a result of Name. Returns nullopt for any other string.
std::optional<WorkPhase> ParseWorkPhase(std::string_view name);
// Returns the words that complete "it has been …": "saving a checkpoint". "" for kNone.
std::string_view Doing(WorkPhase phase);

}  // namespace tfjob::state
