// Checks the section strategy.
#pragma once

#include "runtime/config/training_config.h"

namespace tfjob::config {

// Return InvalidArgument, with the key, if keys are incompatible. CheckElastic checks
// strategy.min_replicas and strategy.max_replicas, and what they require of other keys.
Status CheckStrategy(const StrategyConfig& strategy);
Status CheckElastic(const TrainingConfig& config);

}  // namespace tfjob::config
