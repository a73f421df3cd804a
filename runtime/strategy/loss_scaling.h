// Determines whether a strategy scales the loss (state/loss_scale.h), and how the scaling changes
// the strategy's check for numbers that are not finite.
#pragma once

#include "runtime/model/apply_layer.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

// Returns whether the model computes in float16, so that its loss must be scaled.
inline bool ScalesLoss(const ModelDefinition& definition) {
  return model::HasPolicy(definition.model, model::DTypePolicy::kMixedFloat16);
}

// Returns the rule for batches with numbers that are not finite. If the loss is scaled, such
// numbers are normal while the scale is adjusted, so these batches are skipped regardless of the
// user's choice.
inline config::OnNonFinite RuleOf(const StrategyOptions& options) {
  return ScalesLoss(options.definition) ? config::OnNonFinite::kSkip : options.on_non_finite;
}

}  // namespace tfjob::strategy
