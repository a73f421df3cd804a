// Manages the folder of a model's checkpoints: lists them, finds the newest one and deletes old
// ones. Its text file "checkpoint" is TensorFlow's CheckpointState, so that
// tf.train.latest_checkpoint() finds our checkpoints.
//
// If the disk fails while the folder is examined, the functions return the error: a checkpoint that
// cannot be examined must be neither skipped nor deleted.
//
// The folder is untrusted input: only the last component of each path in "checkpoint" is used, so
// that nothing outside the folder is read or deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::io {

struct Checkpoint {
  std::string prefix;  // "<folder>/model.ckpt-1200"
  int64_t step = -1;   // from the prefix; -1 if the prefix does not end in a number
};

// Returns "<folder>/model.ckpt-<step>".
std::string CheckpointPrefix(const std::string& folder, int64_t step);

// Returns the checkpoints that the state file lists and whose index exists, oldest first. Returns
// an empty list if there is no state file.
StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& folder);
// Returns the checkpoint that the state file names as the newest, or nullopt if there is no state
// file. If that checkpoint does not exist, returns the newest listed checkpoint that exists, or
// DataLoss if none exists.
StatusOr<std::optional<Checkpoint>> LatestCheckpoint(const std::string& folder);

// Call this once the files of CheckpointPrefix(folder, step) are complete. Lists the checkpoint as
// the newest, and deletes the oldest checkpoints beyond `keep` (0: keep all) and those of later
// steps, which date from before a rollback. Writes the state file before it deletes anything; if
// that fails, deletes the new checkpoint's files instead, unless the checkpoint was listed before.
Status RegisterCheckpoint(const std::string& folder, int64_t step, int keep, Time now,
                          FileSystem& files = RealFileSystem());

// Deletes what interrupted writes have left in the folder: temporary files, and data files of
// "model.ckpt-<step>" without an index. No other program may write a checkpoint at the same time.
// Returns the names of the deleted files.
StatusOr<std::vector<std::string>> SweepLeftovers(const std::string& folder,
                                                  FileSystem& files = RealFileSystem());

}  // namespace tfjob::io
