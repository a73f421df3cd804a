// Reads a trainer's progress from its log, for use when the trainer does not answer.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/progress/progress.h"

namespace tfjob::cli {

// Returns the progress in the last line in which tfjob-trainer reported training steps or, if there
// is none, an evaluation. Understands both log formats, text and JSON. Returns nullopt if the log
// contains no such line.
std::optional<progress::Progress> ProgressFromLog(std::string_view log);

}  // namespace tfjob::cli
