// Saves checkpoints in the background: the caller hands over a snapshot (a copy of the state) and
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
  double every_secs = 600;  // ignored if every_steps is set; 0: off
  int64_t every_steps = 0;  // 0: off
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
  // Waits for the previous write. If it failed, returns its error; otherwise hands the snapshot to
  // the background thread.
  Status Save(state::Snapshot snapshot);
  // Waits until the last snapshot is written, however long the disk takes, and returns the error of
  // that write. Logs a warning every 10 s while it waits.
  Status Flush();
  // Returns the last step passed to Save or Skip, or nullopt if there is none yet.
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
