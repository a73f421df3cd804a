// Implements BackupAndRestore, which is not called between steps, but sets up the run: the trainer
// saves and restores checkpoints. Private to this package.
#pragma once

#include "runtime/api/access.h"
#include "runtime/api/callback.h"

namespace tfjob::api {

struct BackupHooks : CallbackHooks {
  explicit BackupHooks(const BackupAndRestore& options) : options(options) {}
  const BackupAndRestore options;
};

// Returns the options of the callback among `callbacks`, or null. Returns InvalidArgument if there
// are several, or if an option is invalid.
StatusOr<const BackupAndRestore*> BackupOf(const std::vector<Callback>& callbacks);

// Makes the run save its checkpoints in the backup's folder.
void SetUpBackup(const BackupAndRestore& backup, int64_t steps_per_epoch,
                 config::TrainingConfig& config);

// Removes the checkpoints and the mark of the run's end from the folder.
tfjob::Status RemoveBackup(const std::string& folder);

}  // namespace tfjob::api
