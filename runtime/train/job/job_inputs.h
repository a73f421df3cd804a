// Defines the inputs that a program that starts a run itself (runtime/api) may provide in memory,
// instead of naming files in a training file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/model/model.h"
#include "runtime/state/snapshot.h"
#include "runtime/train/job/batch_columns.h"

namespace tfjob::data {
class Source;
}  // namespace tfjob::data
namespace tfjob::strategy {
struct ModelDefinition;
}  // namespace tfjob::strategy

namespace tfjob::train {

// Unset members are read from the files that the training file names.
struct JobInputs {
  std::shared_ptr<const model::Model> model;
  // The examples. They have the same fields as those from LoadDataset, and BatchSource has already
  // been applied.
  std::shared_ptr<const data::Source> train, eval;
  // Whether `train` contains only this task's examples. If so, the task reads all of them, in its
  // own order, and batch_size is the batch size of this task. Must be false if tasks share batches.
  bool own_examples = false;

  // The state from which a run without a checkpoint starts, and the number of batches that were
  // drawn before this state was reached.
  std::shared_ptr<const state::Snapshot> start;
  int64_t drawn = 0;
};

// Return the model and the data of a run. Members that are unset in `inputs` are read from the
// files that the training file names.
StatusOr<model::Model> ModelOf(const JobInputs& inputs, const config::TrainingConfig& config);
StatusOr<std::shared_ptr<const data::Source>> DataOf(const JobInputs& inputs,
                                                     const config::TrainingConfig& config,
                                                     Split split, const model::Model& model);
// Returns inputs.start, with inputs.drawn recorded as the position of `task` in the data. If
// inputs.start is unset, returns the StartState of the training file (job_definition.h). Returns
// InvalidArgument if inputs.start is incompatible with the definition.
StatusOr<state::Snapshot> StartOf(const JobInputs& inputs, const config::TrainingConfig& config,
                                  const strategy::ModelDefinition& definition,
                                  std::span<const int> streamed, const cluster::Task& task);

}  // namespace tfjob::train
