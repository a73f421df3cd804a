// Derives from the training file what a job trains on and for how long: the data sets, the model's
// definition, the pipelines and the number of steps. Every task derives the same values, apart from
// the options of its own pipeline.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/tensor/shape.h"

namespace tfjob::data {
struct Dataset;
struct PipelineOptions;
}  // namespace tfjob::data
namespace tfjob::strategy {
struct ModelDefinition;
}  // namespace tfjob::strategy

namespace tfjob::train {

// Reads or generates the examples of one source.
StatusOr<std::shared_ptr<const data::Dataset>> LoadDataset(const config::SourceConfig& source,
                                                           int64_t seed);

// Reads the model and fits loss, metrics and optimizer to it. `training_tasks` is the number of
// tasks that compute gradients; here and below, 0 means that it is unknown (the sparse form of
// TF_CONFIG). Error messages name the key or the layer.
StatusOr<strategy::ModelDefinition> DefineModel(const config::TrainingConfig& config,
                                                const Shape& feature_shape, int training_tasks);

// Returns the options for the endless batches of one training task: its share of each epoch or, if
// the number of tasks is unknown, the whole epoch in the task's own order.
data::PipelineOptions TrainingPipeline(const config::TrainingConfig& config,
                                       const strategy::ModelDefinition& definition, int rank,
                                       int training_tasks);
// Returns the options for one pass over the evaluation data, in order.
data::PipelineOptions EvaluationPipeline(const config::TrainingConfig& config,
                                         const strategy::ModelDefinition& definition);

// Returns the global step at which the run ends: max_steps, or the number of steps that `epochs`
// take over all tasks (rounded up), whichever is less. A synchronous step takes
// replicas_to_aggregate batches. The batches of an epoch are those of all tasks together
// (BatchesPerEpoch).
int64_t TotalSteps(const config::TrainingConfig& config, int64_t examples, int training_tasks);
// Returns the number of batches of all tasks together in one epoch.
int64_t BatchesPerEpoch(const config::TrainingConfig& config, int64_t examples, int training_tasks);

}  // namespace tfjob::train
