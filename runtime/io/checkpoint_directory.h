// Manages a model's checkpoint folder: lists the checkpoints, finds the newest one and deletes old
// ones. The folder's state file, the text file "checkpoint", is TensorFlow's CheckpointState, so
// that tf.train.latest_checkpoint() finds our checkpoints.
//
// If the disk fails while a function examines the folder, the function returns the error, because a
// checkpoint that cannot be examined must be neither skipped nor deleted.
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
#include "runtime/io/write_right.h"

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

// Records the checkpoint CheckpointPrefix(folder, step) in the state file as the newest one. Its
// files must be complete; returns FailedPrecondition if it has no index. Then deletes the oldest
// checkpoints beyond `keep` (0: keep all), and any checkpoints of later steps, which a rollback has
// made obsolete. If the state file cannot be written, deletes the new checkpoint's files instead,
// unless the checkpoint was already listed or this process has lost the right to write.
//
// If `right` has a term, the state file records the term and the step in a comment. Calls
// CheckRight again after each operation that may take long, and propagates its errors.
Status RegisterCheckpoint(const std::string& folder, int64_t step, int keep, Time now,
                          FileSystem& files = RealFileSystem(), const WriteRight& right = {});
// Returns OK if a checkpoint of this step may still be registered. Otherwise, returns the error of
// right.check. Returns FailedPrecondition if the state file already records a later term, or the
// same term with a later step: another process has registered a checkpoint in the meantime.
Status CheckRight(const std::string& folder, int64_t step, const WriteRight& right);
// Returns the term that the state file records, or 0 if there is none.
StatusOr<int64_t> RecordedTerm(const std::string& folder);

// Deletes the files that interrupted writes have left in the folder: temporary files, and data
// files of "model.ckpt-<step>" without an index. No other program may write a checkpoint at the
// same time, because its write would fail. Checks `right` before each deletion, and returns the
// error of this check. Returns the names of the deleted files.
StatusOr<std::vector<std::string>> SweepLeftovers(const std::string& folder,
                                                  FileSystem& files = RealFileSystem(),
                                                  const WriteRight& right = {});

}  // namespace tfjob::io
