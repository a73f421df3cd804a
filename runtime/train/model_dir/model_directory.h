// Prepares the folder of a run (model_dir), and writes the run's checkpoints and the mark of its
// end. Either one task alone does this during the whole run, or several tasks of a group may do it
// in turn: then each operation checks the task's right to write.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/state/snapshot.h"
#include "runtime/train/model_dir/run_mark.h"

namespace tfjob::train {

// Returns whether an error of the disk may go away while the task trains. A full or failing disk
// may recover, unlike a folder that this task has no permission to write to.
bool MayPass(const Status& status);

struct ModelDirectoryOptions {
  std::string folder;
  state::TrainingState training;
  int keep = 0;  // how many checkpoints to keep; 0: all
  RunMark run;
  FileSystem* files = &RealFileSystem();
  // If several tasks may write in turn, returns an error unless this task has the right to write.
  // Otherwise null.
  std::function<Status()> may_write;
};

// Owned by one thread. The operations may hang with the disk.
class ModelDirectory {
 public:
  explicit ModelDirectory(ModelDirectoryOptions options) : options_(std::move(options)) {}

  // Creates the folder, and removes the marks of earlier runs' ends and what interrupted writes
  // have left. Returns an error if the folder cannot be written to. If that may change, only logs
  // a warning.
  Status Prepare();
  // Saves a checkpoint (SaveCheckpoint). If several tasks may write, the first call in a term also
  // prepares the folder, and saves nothing if the newest checkpoint is of this step already: the
  // task that had the right before has then saved it.
  Status Save(const state::Snapshot& snapshot, Time now, int64_t term);
  Status Mark(int64_t step, Time now);

 private:
  Status Check() const { return options_.may_write ? options_.may_write() : OkStatus(); }
  Status TryToWrite() const;
  // Removes the mark in this folder. If several tasks may write, keeps a mark of this run: another
  // task has ended the run.
  Status ClearMark(const std::string& folder) const;
  Status Sweep() const;
  // Prepares the folder for a task that may not have written to it in this term yet.
  Status TakeOver(int64_t term);

  const ModelDirectoryOptions options_;
  int64_t taken_over_in_ = -1;  // the term of the last successful TakeOver
};

}  // namespace tfjob::train
