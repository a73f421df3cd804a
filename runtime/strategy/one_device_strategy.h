// Makes the strategy that keeps everything in this process. The graph itself applies the optimizer.
#pragma once

#include <memory>

#include "runtime/strategy/strategy.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

StatusOr<std::unique_ptr<Strategy>> MakeOneDevice(StrategyOptions options);

}  // namespace tfjob::strategy
