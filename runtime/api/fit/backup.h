// Implements the callbacks that configure the run. BackupAndRestore does nothing between steps,
// because the trainer saves and restores the checkpoints. With TerminateOnNaN, the trainer
// continues if numbers are not finite, and the callback stops training. Private to this package.
#pragma once

#include "runtime/api/access.h"
#include "runtime/api/callback.h"

namespace tfjob::api {

struct BackupHooks : CallbackHooks {
  explicit BackupHooks(const BackupAndRestore& options) : options(options) {}
  const BackupAndRestore options;
};

class NanHooks : public CallbackHooks {
 public:
  bool WantsBatches() const override { return true; }
  bool MayStopTraining() const override { return true; }
  Status OnBatchEnd(FitControl& run, int64_t batch, const Metrics& metrics) override;
};

// Returns InvalidArgument if one of the callbacks is null. Returns Unimplemented if one of them may
// stop the training (CallbackHooks::MayStopTraining), and this is not possible in this job.
tfjob::Status CheckCallbacks(const std::vector<Callback>& callbacks,
                             const cluster::TfConfig& tf_config);

// Returns the options of the BackupAndRestore among `callbacks`, or null if there is none. Returns
// InvalidArgument if there are several, or if an option is invalid.
StatusOr<const BackupAndRestore*> BackupOf(const std::vector<Callback>& callbacks);
bool TerminatesOnNan(const std::vector<Callback>& callbacks);

// Sets the keys of `config` for checkpoints in the backup's folder.
void SetUpBackup(const BackupAndRestore& backup, int64_t steps_per_epoch,
                 config::TrainingConfig& config);

// Removes the backup's checkpoints, and the file that marks the end of the run. If this fails, only
// logs a warning, because the training has succeeded.
void RemoveBackup(const BackupAndRestore& backup);

}  // namespace tfjob::api
