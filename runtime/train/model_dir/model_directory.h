// Prepares a run's folder (model_dir), and writes the run's checkpoints and the marker of its end.
// Either a single task does this during the whole run, or several tasks of a group may do it in
// turn. In the second case, each operation checks whether the task has the right to write.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/state/snapshot.h"
#include "runtime/train/model_dir/run_claim.h"
#include "runtime/train/model_dir/run_mark.h"

namespace tfjob::train {

// Returns whether a disk error may go away while the task trains. A full or failing disk may
// recover, but a missing permission to write to the folder remains.
bool MayPass(const Status& status);

struct ModelDirectoryOptions {
  std::string folder;
  state::TrainingState training;
  int keep = 0;  // how many checkpoints to keep; 0: all
  RunMark run;
  FileSystem* files = &RealFileSystem();
  // Null if only this task may write. If several tasks may write in turn, returns an error unless
  // this task has the right to write.
  std::function<Status()> may_write;
  // If set, the first save in a term first writes this claim, if it is still expected.
  std::shared_ptr<LateClaim> late_claim;
};

// Owned by one thread. The operations hang if the disk hangs.
class ModelDirectory {
 public:
  explicit ModelDirectory(ModelDirectoryOptions options) : options_(std::move(options)) {}

  // Creates the folder, and removes the end markers of earlier runs and the remains of interrupted
  // writes. Returns an error if the folder is not writable. If this may change (MayPass), only logs
  // a warning.
  Status Prepare();
  // Saves a checkpoint (SaveCheckpoint). If several tasks may write, the first call in a term also
  // prepares the folder. That call saves nothing if the newest checkpoint already has this step: in
  // this case, the task that previously had the right to write has saved it.
  Status Save(const state::Snapshot& snapshot, Time now, int64_t term);
  Status Mark(int64_t step, Time now);

 private:
  Status Check() const { return options_.may_write ? options_.may_write() : OkStatus(); }
  Status TryToWrite() const;
  // Removes the marker in this folder. If several tasks may write, keeps a marker of this run,
  // because another task has ended the run.
  Status ClearMark(const std::string& folder) const;
  Status Sweep() const;
  // Checks and prepares the folder. Call once per term, before the first save.
  Status TakeOver(int64_t term);

  const ModelDirectoryOptions options_;
  int64_t taken_over_in_ = -1;  // the term of the last successful TakeOver
};

}  // namespace tfjob::train
