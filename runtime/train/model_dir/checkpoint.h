// Saves and loads checkpoints of a training run. A checkpoint stores a snapshot (variables, slots,
// step and ledger) under TensorFlow's names:
//
//   dense/kernel, dense/bias   the variables, by name
//   dense/kernel/Adam          slots: "<variable>/<suffix>" (runtime/optimizer/optimizer.h)
//   global_step                int64 scalar
//   tfjob/ledger               uint8 vector: which contributions of which task the parameter
//                              servers have applied; may be missing
//   tfjob/optimizer            uint8 vector: the meaning of the slots (slot_record.h); may be
//                              missing
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/stored_tensor.h"
#include "runtime/io/write_right.h"
#include "runtime/state/snapshot.h"

namespace tfjob {
class ThreadPool;
}  // namespace tfjob

namespace tfjob::train {

// Writes the checkpoint `<folder>/model.ckpt-<step>`, registers it as the newest, and deletes the
// oldest checkpoints beyond `keep` (0 keeps all). Writes streamed values piece by piece; if a value
// cannot be read, returns the error. Returns InvalidArgument, and writes nothing, if the ledger is
// longer than LoadCheckpoint accepts (256 MiB). Checks the right to write (io::CheckRight) three
// times: at the start, before the checkpoint appears under its name, and before it is registered.
// If a check fails, the save stops and returns the error.
Status SaveCheckpoint(const std::string& folder, const state::TrainingState& training,
                      const state::Snapshot& snapshot, int keep, Time now,
                      FileSystem& files = RealFileSystem(), const io::WriteRight& right = {});

// The resources that a load may use.
struct LoadOptions {
  // If set, the values are read into the memory of this snapshot's tensors, and the returned
  // snapshot consists of these tensors. The tensors must have the model's types and shapes, and
  // their content is undefined after an error. If null, the values are read into new tensors.
  const state::Snapshot* into = nullptr;
  ThreadPool* pool = nullptr;  // if set, its threads help to read the values
  // If set, the values of `variables` (indices in ascending order) stay in the file, and `values`
  // receives references to them in the same order. The snapshot then contains neither values nor
  // slots of these variables. `into` must be null.
  struct Stored {
    std::vector<int> variables;
    std::vector<io::StoredTensor> values;
  };
  Stored* stored = nullptr;
  // Indices of variables in ascending order. The values and slots of these variables stay in the
  // file and are streamed from there. Their checksums are verified first. `into` must be null.
  std::span<const int> streamed = {};
};

// Reads a checkpoint written by SaveCheckpoint or by TensorFlow. Returns NotFound if a variable is
// missing, and InvalidArgument if the type or shape of a variable or slot differs from the model's;
// the message names the variable or slot. A slot gets its initial value if the checkpoint lacks it,
// or if it had another meaning for the optimizer that wrote the checkpoint.
StatusOr<state::Snapshot> LoadCheckpoint(const std::string& prefix,
                                         const state::TrainingState& training,
                                         const LoadOptions& options = {});

// Returns the snapshot of the newest checkpoint, or nullopt if the folder has none. If the newest
// checkpoint is damaged, logs a warning and returns the snapshot of the newest intact one, or
// DataLoss if no checkpoint is intact.
StatusOr<std::optional<state::Snapshot>> LoadLatestCheckpoint(const std::string& folder,
                                                              const state::TrainingState& training,
                                                              const LoadOptions& options = {});

// Returns the error that LoadLatestCheckpoint would return, as far as the error can be detected
// without reading the values of the newest checkpoint. If the index of the newest checkpoint, or
// the size of one of its data files, shows damage, loads older checkpoints, as LoadLatestCheckpoint
// does. Returns OK if the folder has no checkpoint. `streamed` is as in LoadOptions.
Status CheckLatestCheckpoint(const std::string& folder, const state::TrainingState& training,
                             std::span<const int> streamed = {});

}  // namespace tfjob::train
