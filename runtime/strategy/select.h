// Chooses the strategy with which a task trains, and makes it.
#pragma once

#include <memory>

#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {

// Returns the strategy that the training file names or, for `auto`, the first one that suits the
// cluster. Returns InvalidArgument or Unimplemented, with a message that says what to change, if
// this task or the cluster cannot use it. Never returns kAuto.
StatusOr<config::StrategyKind> Select(config::StrategyKind wanted,
                                      const cluster::TfConfig& tf_config);

// Makes the selected strategy. Does not wait for any other task.
StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options);

}  // namespace tfjob::strategy
