// Marks the end of a run in its folder, for tasks that see only the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::train {

// Identifies the run whose end is marked, for an evaluator that reads the same folder. The mark is
// written after the last checkpoint and removed by a run that continues. A mark of another job or
// attempt belongs to an older run and is ignored.
struct RunMark {
  std::string job_uid;
  int32_t attempt = 0;
  // Used only if there is no job UID: a mark from before this time belongs to an older run.
  Time oldest{};
};
Status MarkFinished(const std::string& folder, const RunMark& run, int64_t step, Time now);
Status ClearFinished(const std::string& folder);
// Returns the step of the run's last checkpoint, or nullopt while the run continues.
StatusOr<std::optional<int64_t>> FinishedStep(const std::string& folder, const RunMark& run);

}  // namespace tfjob::train
