// Saves and loads checkpoints of a training run: a snapshot of variables, slots, step and ledger
// under TensorFlow's names.
//
//   dense/kernel, dense/bias   the variables, by name
//   dense/kernel/Adam          slots: "<variable>/<suffix>" (runtime/optimizer/optimizer.h)
//   global_step                int64 scalar
//   tfjob/ledger               uint8 vector: what the parameter servers applied for which task;
//                              may be missing
#pragma once

#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/state/snapshot.h"

namespace tfjob::train {

// Writes `<folder>/model.ckpt-<step>`, then registers it as the newest and deletes old ones
// beyond `keep`.
Status SaveCheckpoint(const std::string& folder, const state::TrainingState& training,
                      const state::Snapshot& snapshot, int keep, Time now);

// Reads a checkpoint written by us or by TensorFlow. Returns NotFound if it lacks a variable, and
// InvalidArgument if a variable has another type or shape; the message names the variable. Missing
// slots get their initial values.
StatusOr<state::Snapshot> LoadCheckpoint(const std::string& prefix,
                                         const state::TrainingState& training);

// Returns the snapshot of the newest checkpoint, or nullopt if the folder has none. If the
// newest checkpoint is damaged, logs a warning and returns the newest intact one, or DataLoss
// if none is intact.
StatusOr<std::optional<state::Snapshot>> LoadLatestCheckpoint(const std::string& folder,
                                                              const state::TrainingState& training);

// Returns the error that LoadLatestCheckpoint would return, as far as the checkpoint's index shows
// it; the values are read only if the newest checkpoint turns out to be damaged. Returns OK if the
// folder has no checkpoint.
Status CheckLatestCheckpoint(const std::string& folder, const state::TrainingState& training);

}  // namespace tfjob::train
