// Checkpoints of a training run: a snapshot of variables, slots, step and ledger under TensorFlow's names.
//
//   dense/kernel, dense/bias      the variables, by their names
//   dense/kernel/Adam             slots: "<variable>/<suffix>" (runtime/optimizer/optimizer.h)
//   global_step                   int64 scalar
//   tfjob/ledger                  uint8 vector: what the parameter servers applied for whom; may be missing
#pragma once

#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/ps/snapshot.h"

namespace tfjob::train {

// Writes `<folder>/model.ckpt-<step>`, then names it the newest and deletes old ones beyond `keep`.
Status SaveCheckpoint(const std::string& folder, const ps::Definition& definition,
                      const ps::Snapshot& snapshot, int keep, Time now);

// Reads a checkpoint of ours or of TensorFlow. NotFound names a variable that it lacks; InvalidArgument one of another
// type or shape; slots that it lacks get their initial values.
StatusOr<ps::Snapshot> LoadCheckpoint(const std::string& prefix, const ps::Definition& definition);

// The newest checkpoint's snapshot; nothing when the folder has none. When it is damaged, the newest whole one, with a
// warning.
StatusOr<std::optional<ps::Snapshot>> LoadLatestCheckpoint(const std::string& folder,
                                                           const ps::Definition& definition);

// Whether LoadLatestCheckpoint would refuse, found without reading the values. OK when the folder has none.
Status CheckLatestCheckpoint(const std::string& folder, const ps::Definition& definition);

// That a run is over, for an evaluator that reads the same folder. Written after the last checkpoint; removed by a run that
// goes on. A mark of another job or attempt is of an older run and does not count.
struct RunMark {
  std::string job_uid;
  int32_t attempt = 0;
  // Without a job UID: a mark from before this time is of an older run.
  Time oldest{};
};
Status MarkFinished(const std::string& folder, const RunMark& run, int64_t step, Time now);
Status ClearFinished(const std::string& folder);
// The step of the run's last checkpoint; nothing while it goes on.
StatusOr<std::optional<int64_t>> FinishedStep(const std::string& folder, const RunMark& run);

}  // namespace tfjob::train
