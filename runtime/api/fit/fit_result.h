// Saves the result of a call of Fit that another call follows, in the folder of its
// BackupAndRestore. A process that is started again during a later call repeats the earlier calls,
// which return this result. Private to this package.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/api/metrics.h"
#include "runtime/base/status.h"
#include "runtime/state/snapshot.h"

namespace tfjob::api {

struct FitResult {
  History history;
  int64_t run_end = 0;       // the step at which the run has ended
  int64_t planned_step = 0;  // the step at which it would have ended without callbacks
  int64_t epochs_begun = 0;
  // The values after Fit. Their step is not that of the run's end if callbacks have chosen others.
  std::shared_ptr<const state::Snapshot> values;
};

// Identifies a call of Fit.
struct FitId {
  std::string folder;  // of the checkpoints
  std::string job_uid;
  int32_t run = 0;  // RunOrder::number
};

tfjob::Status WriteFitResult(const FitId& id, const FitResult& result,
                             const state::TrainingState& training);

// Returns nullopt if there is no result, or only that of another call: of another job, another run,
// or with another planned step, unless `planned_step` is nullopt. Reads the values only if
// `training` is set.
StatusOr<std::optional<FitResult>> ReadFitResult(const FitId& id,
                                                 std::optional<int64_t> planned_step,
                                                 const state::TrainingState* training);

}  // namespace tfjob::api
