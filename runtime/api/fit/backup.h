// Implements the callbacks that set up the run. BackupAndRestore is not called between steps: the
// trainer saves and restores checkpoints. TerminateOnNaN makes the trainer leave it to the callback
// what to do about numbers that are not finite. Private to this package.
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

// Returns InvalidArgument if one of the callbacks is null, and Unimplemented if one of them may
// need what is not possible in this job: CallbackHooks::MayStopTraining, MaySetLearningRate.
tfjob::Status CheckCallbacks(const std::vector<Callback>& callbacks,
                             const cluster::TfConfig& tf_config);

// Returns the options of the callback among `callbacks`, or null. Returns InvalidArgument if there
// are several, or if an option is invalid.
StatusOr<const BackupAndRestore*> BackupOf(const std::vector<Callback>& callbacks);
bool TerminatesOnNan(const std::vector<Callback>& callbacks);

// Makes the run save its checkpoints in the backup's folder.
void SetUpBackup(const BackupAndRestore& backup, int64_t steps_per_epoch,
                 config::TrainingConfig& config);

// Removes the backup's checkpoints, and the mark of the run's end. A problem is only logged: the
// training has succeeded.
void RemoveBackup(const BackupAndRestore& backup);

}  // namespace tfjob::api
