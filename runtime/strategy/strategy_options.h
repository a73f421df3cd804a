// Defines the options that all strategies have in common.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/exec/device.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/model/model_definition.h"

namespace tfjob::strategy {

struct StrategyOptions {
  ModelDefinition definition;
  exec::Device device;
  config::OnNonFinite on_non_finite = config::OnNonFinite::kFail;
  // Applies only to strategies that exchange gradients between tasks; see PlanStep.
  config::Compression compression = config::Compression::kNone;
  int64_t replica = 0;  // rank among the training tasks, so that dropout differs between them
  // Provides the values that the chief fills empty variables with: the last checkpoint, or initial
  // values. `into` is null, or contains tensors that share the variables' memory, into which the
  // values may be put directly instead of into new tensors.
  std::function<StatusOr<state::Snapshot>(const state::Snapshot* into)> provide_state;
};

}  // namespace tfjob::strategy
