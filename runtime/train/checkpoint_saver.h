// Saves checkpoints in the background: the caller hands over a snapshot, which is a copy, and
// continues training while a thread writes it. Only one snapshot is written at a time, so a caller
// that saves too often waits for the previous write.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/state/snapshot.h"

namespace tfjob::train {

struct CheckpointPolicy {
  double every_secs = 600;  // 0: not by time
  int64_t every_steps = 0;  // 0: not by steps
  int keep = 5;             // 0: all
};

// Owned by one thread.
class CheckpointSaver {
 public:
  // If `folder` is empty, nothing is saved. `clock` must outlive the saver.
  CheckpointSaver(std::string folder, state::TrainingState training, CheckpointPolicy policy,
                  Clock& clock);
  // Waits for the write in progress.
  ~CheckpointSaver();

  bool enabled() const { return !folder_.empty(); }
  // Returns true if a checkpoint is due at `step`, counting from the last Save or Skip.
  bool Due(int64_t step) const;
  // Acts as if a checkpoint of `step` had just been saved. Call after a restore.
  void Skip(int64_t step);
  // Hands the snapshot to the background thread. Returns the error of the previous write.
  Status Save(state::Snapshot snapshot);
  // Waits until everything is written, however long the disk takes. Logs the wait every 10 s.
  Status Flush();
  // Returns the last step passed to Save or Skip, or nullopt.
  std::optional<int64_t> last_step() const { return last_step_; }

 private:
  void Write();
  void AwaitWritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const state::TrainingState training_;
  const CheckpointPolicy policy_;
  Clock& clock_;
  std::optional<int64_t> last_step_;
  Duration last_time_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<state::Snapshot> pending_ ABSL_GUARDED_BY(mutex_);
  Status result_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::train
