// Chooses and creates the strategy that a task trains with.
#pragma once

#include <memory>

#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {

// Returns the strategy that the training file names. For `auto`, returns the first strategy suited
// to the cluster. If this task or the cluster cannot use the strategy, returns InvalidArgument or
// Unimplemented, with a message that says what to change. Never returns kAuto.
StatusOr<config::StrategyKind> Select(config::StrategyKind wanted,
                                      const cluster::TfConfig& tf_config);

// Returns whether each task of this strategy contributes a part of every batch
// (data::PipelineOptions::global_batch).
bool MakesGlobalBatches(config::StrategyKind kind);

// Creates the endpoint of the selected strategy. Call MakeEndpoint before the task's server is
// created, because the endpoint becomes the server's handler. Uses only the task's configuration,
// cluster, identity and credentials. Returns null if the tasks form no group. Propagates errors
// from Select.
StatusOr<std::unique_ptr<collectives::Endpoint>> MakeEndpoint(const TrainingTask& task);

// Creates the selected strategy. Does not wait for any other task.
StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options);

}  // namespace tfjob::strategy
