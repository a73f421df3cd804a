// Determines whether a strategy scales the loss (state/loss_scale.h), and how this changes its
// check of numbers.
#pragma once

#include "runtime/model/apply_layer.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

// Returns whether the model computes in float16, so that its loss must be scaled.
inline bool ScalesLoss(const ModelDefinition& definition) {
  return model::HasPolicy(definition.model, model::DTypePolicy::kMixedFloat16);
}

// Returns the rule for batches with numbers that are not finite. Such numbers are normal while the
// scale is adjusted, so these batches are skipped whatever the user has chosen.
inline config::OnNonFinite RuleOf(const StrategyOptions& options) {
  return ScalesLoss(options.definition) ? config::OnNonFinite::kSkip : options.on_non_finite;
}

}  // namespace tfjob::strategy
