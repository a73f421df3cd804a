// Chooses and creates the strategy with which a task trains.
#pragma once

#include <memory>

#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {

// Returns the strategy that the training file names. For `auto`, returns the first strategy that
// suits the cluster. If this task or the cluster cannot use the strategy, returns InvalidArgument
// or Unimplemented, with a message that says what to change. Never returns kAuto.
StatusOr<config::StrategyKind> Select(config::StrategyKind wanted,
                                      const cluster::TfConfig& tf_config);

// Creates the selected strategy. Does not wait for any other task.
StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options);

}  // namespace tfjob::strategy
