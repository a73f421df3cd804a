// A trainer's progress as its log tells it, for when the trainer itself cannot be asked.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/progress/progress.h"

namespace tfjob::cli {

// The last line that tfjob-trainer logs after some steps, or, where there is none, after an
// evaluation; of either log format. Nothing when the log has no such line.
std::optional<progress::Progress> ProgressFromLog(std::string_view log);

}  // namespace tfjob::cli
