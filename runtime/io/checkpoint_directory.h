// The folder of a model's checkpoints: which there are, which is the newest, and the retention of
// old ones. The text file "checkpoint" in it is TensorFlow's CheckpointState, so that
// tf.train.latest_checkpoint() finds ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::io {

struct Checkpoint {
  std::string prefix;  // "<folder>/model.ckpt-1200"
  int64_t step = -1;   // from the prefix; -1 when it ends in no number
};

// "<folder>/model.ckpt-<step>".
std::string CheckpointPrefix(const std::string& folder, int64_t step);

// The checkpoints that the state file lists and whose index exists, oldest first; empty without a
// state file.
StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& folder);
// The one that the state file names as newest; nothing without a state file. A state file that
// names a checkpoint which is not there gives the newest listed one that is.
StatusOr<std::optional<Checkpoint>> LatestCheckpoint(const std::string& folder);

// After the files of CheckpointPrefix(folder, step) are whole: lists it as the newest, forgets
// listed checkpoints of later steps (of a run that was rolled back), and deletes the oldest ones
// beyond `keep` (0: keep all). The state file is written before anything is deleted.
Status RegisterCheckpoint(const std::string& folder, int64_t step, int keep, Time now);

}  // namespace tfjob::io
