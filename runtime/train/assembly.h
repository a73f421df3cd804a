// From the training file to the values that a run needs: data sets, the model's definition, pipelines, the number of
// steps.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/config/training_config.h"
#include "runtime/data/pipeline.h"
#include "runtime/strategy/model_definition.h"

namespace tfjob::train {

// Reads or makes the examples of one source.
StatusOr<std::shared_ptr<const data::Dataset>> LoadDataset(const config::SourceConfig& source,
                                                           int64_t seed);

// Reads the model, and fits loss, metrics, optimizer and parameter servers to it. `training_tasks` is how many tasks
// compute gradients; 0, here and below, when nobody knows (the sparse form of TF_CONFIG). Errors name the key or the
// layer.
StatusOr<strategy::ModelDefinition> DefineModel(const config::TrainingConfig& config,
                                                const Shape& feature_shape, int training_tasks);

// The batches of one training task, without end: its share of each epoch; when nobody knows how many tasks there are, all
// of it, in an order of the task's own.
data::PipelineOptions TrainingPipeline(const config::TrainingConfig& config,
                                       const strategy::ModelDefinition& definition, int rank,
                                       int training_tasks);
// One pass over the evaluation data, in its order.
data::PipelineOptions EvaluationPipeline(const config::TrainingConfig& config,
                                         const strategy::ModelDefinition& definition);

// The global step at which the run ends: max_steps, or as many steps as `epochs` take over all tasks (rounded up),
// whichever is less. A synchronous step takes replicas_to_aggregate batches. An epoch is as many batches as the data has,
// whoever computes them.
int64_t TotalSteps(const config::TrainingConfig& config, int64_t examples, int training_tasks);
// Batches of all tasks together in one epoch.
int64_t BatchesPerEpoch(const config::TrainingConfig& config, int64_t examples, int training_tasks);
// How many gradients one global step takes.
int64_t GradientsPerStep(const config::TrainingConfig& config, int training_tasks);

}  // namespace tfjob::train
