// Saves checkpoints in the background: the caller gives a snapshot, which is a copy, and goes on training while a thread
// writes it. One is written at a time; a caller that is faster waits for the one before.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/ps/snapshot.h"

namespace tfjob::train {

struct CheckpointPolicy {
  double every_secs = 600;  // 0: not by time
  int64_t every_steps = 0;  // 0: not by steps
  int keep = 5;             // 0: all
};

// Owned by one thread.
class CheckpointSaver {
 public:
  // An empty folder saves nothing. `clock` must outlive the saver.
  CheckpointSaver(std::string folder, ps::Definition definition, CheckpointPolicy policy,
                  Clock& clock);
  // Waits for the write that is under way.
  ~CheckpointSaver();

  bool enabled() const { return !folder_.empty(); }
  // Whether a checkpoint at this step is due, counted from the last Save (or Skip).
  bool Due(int64_t step) const;
  // As if a checkpoint of this step had been saved now: after a restore.
  void Skip(int64_t step);
  // Hands the snapshot to the background. Returns the error of the write before it.
  Status Save(ps::Snapshot snapshot);
  // Waits until everything is written, however long the disk takes; the log says so every 10 s.
  Status Flush();
  // The step that was given last, or nothing.
  std::optional<int64_t> last_step() const { return last_step_; }

 private:
  void Write();
  void AwaitWritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const ps::Definition definition_;
  const CheckpointPolicy policy_;
  Clock& clock_;
  std::optional<int64_t> last_step_;
  Duration last_time_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<ps::Snapshot> pending_ ABSL_GUARDED_BY(mutex_);
  Status result_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::train
