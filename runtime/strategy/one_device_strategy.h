// Creates the strategy that trains on one device and keeps all variables in this process. The
// training graph itself applies the optimizer, unless batches may be skipped (OnNonFinite in
// training_config.h).
#pragma once

#include <memory>

#include "runtime/rpc/identity.h"
#include "runtime/strategy/strategy.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

// If batches were skipped, a snapshot records the position in the data under the task `self`.
// Otherwise, it records none, because the number of drawn batches equals the step.
StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(rpc::Identity self, StrategyOptions options);

}  // namespace tfjob::strategy
