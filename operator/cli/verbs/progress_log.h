// Reads a trainer's progress from its log, for when the trainer itself cannot be asked.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/progress/progress.h"

namespace tfjob::cli {

// Returns the progress in the last line that tfjob-trainer logged after some steps or, if there
// is none, after an evaluation. Reads both log formats. Returns nullopt if the log contains no
// such line.
std::optional<progress::Progress> ProgressFromLog(std::string_view log);

}  // namespace tfjob::cli
