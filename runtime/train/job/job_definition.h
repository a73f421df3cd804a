// Derives the definition of a job from the training file: the datasets, the model's definition, the
// pipelines and the number of steps. Every task derives the same values, except for the options of
// its own pipeline.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/source.h"
#include "runtime/model/model.h"
#include "runtime/train/job/batch_columns.h"

namespace tfjob::state {
struct Snapshot;
}  // namespace tfjob::state
namespace tfjob::strategy {
struct ModelDefinition;
}  // namespace tfjob::strategy

namespace tfjob::train {

// Reads the model's architecture.
StatusOr<model::Model> ReadModel(const config::ModelConfig& config);

// Reads, generates or opens the examples of one source. The fields have the names of the graph's
// feeds (model/build.h). The first form reads the model of the training file.
StatusOr<std::shared_ptr<const data::Source>> LoadDataset(const config::TrainingConfig& config,
                                                          Split split);
StatusOr<std::shared_ptr<const data::Source>> LoadDataset(const config::TrainingConfig& config,
                                                          Split split, const model::Model& model,
                                                          Extent extent = Extent::kAll);
// Returns the examples of arrays in memory, like LoadDataset for files. `source` assigns arrays to
// the inputs and outputs of the model, as for the format npz; its other members are not used.
StatusOr<std::shared_ptr<const data::Source>> ArraySource(const config::SourceConfig& source,
                                                          Split split, const model::Model& model,
                                                          std::map<std::string, Tensor> arrays,
                                                          Extent extent = Extent::kAll);

// Derives the losses, metrics, optimizer and variables of the model from the training file and the
// data of `split`. `training_tasks` is the number of tasks that compute gradients; here and below,
// 0 means that this number is unknown (the sparse form of TF_CONFIG). Error messages name the key
// or the layer. The first form reads the model of the training file.
StatusOr<strategy::ModelDefinition> DefineModel(const config::TrainingConfig& config, Split split,
                                                const data::Source& source, int training_tasks);
StatusOr<strategy::ModelDefinition> DefineModel(const config::TrainingConfig& config, Split split,
                                                const data::Source& source, int training_tasks,
                                                model::Model model);

// Returns the part of the definition that depends only on the training file and on `features`, the
// types of the inputs: the model, its optimizer and its variables.
StatusOr<strategy::ModelDefinition> DefineState(const config::TrainingConfig& config,
                                                model::Model model,
                                                std::vector<model::TensorType> features);

// Returns the state from which a run without a checkpoint starts. The variables have initial
// values, unless model.weights provides values. If model.optimizer_state is set, the slots and the
// step come from the same file. The values and slots of the variables that `streamed` lists are
// streamed: from the file, or as strategy::InitialState does. Error messages name the key, the file
// and the variable.
StatusOr<state::Snapshot> StartState(const config::TrainingConfig& config,
                                     const strategy::ModelDefinition& definition,
                                     std::span<const int> streamed = {});

// Returns how the training tasks share the examples (data.shard). `training_tasks` is 0 if their
// number is unknown; returns InvalidArgument if data.shard then needs it.
StatusOr<data::Sharding> ShardingOf(const config::TrainingConfig& config, int training_tasks);
// Returns the pipeline options of a training task. The pipeline never runs out of batches. In each
// epoch, the task reads its share of the examples or, if the number of tasks is unknown, all
// examples in an order of its own. If `together` is true (here and below), each task provides a
// part of every batch (data::PipelineOptions::global_batch). If it is false, global_batch_size must
// be a multiple of the number of tasks; otherwise, returns InvalidArgument. Propagates errors from
// ColumnsOf (batch_columns.h).
StatusOr<data::PipelineOptions> TrainingPipeline(const config::TrainingConfig& config,
                                                 const strategy::ModelDefinition& definition,
                                                 const data::Source& source, int rank,
                                                 int training_tasks, bool together = false);
// Returns the options of a pipeline that reads the evaluation data once, in order.
StatusOr<data::PipelineOptions> EvaluationPipeline(const config::TrainingConfig& config,
                                                   const strategy::ModelDefinition& definition,
                                                   const data::Source& source);

// Returns the options of a pipeline that reads the inputs of the evaluation data once, in order.
StatusOr<data::PipelineOptions> PredictionPipeline(const config::TrainingConfig& config,
                                                   const model::Model& model,
                                                   const data::Source& source);

// Returns the global step at which the run ends: max_steps, or the number of steps in `epochs`
// epochs (rounded up), whichever is less. An epoch has BatchesPerEpoch batches. A step uses one
// batch; a synchronous step with parameter servers uses replicas_to_aggregate batches.
int64_t TotalSteps(const config::TrainingConfig& config, const data::Source& source,
                   int training_tasks, bool together = false);
// Returns the number of steps in one epoch, at least 1.
int64_t StepsPerEpoch(const config::TrainingConfig& config, const data::Source& source,
                      int training_tasks, bool together = false);
// Returns the number of batches in one epoch, over all tasks. A batch that tasks share counts once.
int64_t BatchesPerEpoch(const config::TrainingConfig& config, const data::Source& source,
                        int training_tasks, bool together = false);
// Returns the number of examples in a full batch that the tasks share. If the source has buckets,
// this is the number for the longest bucket.
int64_t UsualGlobalBatch(const config::TrainingConfig& config, const data::Source& source,
                         int training_tasks);
// Returns the settings that determine the examples of each step and the number of steps: keys of
// the training file, and the number and the fingerprint of the examples. The result has one line
// per setting, "NAME: VALUE", and must be equal in all tasks that share batches.
std::string TrainingAgreement(const config::TrainingConfig& config, const data::Source& source);

}  // namespace tfjob::train
