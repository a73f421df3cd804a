// Scales the loss of a model that computes in float16, as Keras' LossScaleOptimizer does with its
// defaults. Small gradients would become zero in float16, so the loss is multiplied by a scale, and
// the gradients are divided by this scale. If a gradient is not finite, the scale was too large: it
// is halved, and the step is skipped. After a number of good steps, the scale is doubled. Unlike in
// Keras, the scale has limits. At the lower limit, gradients that are not finite must have another
// cause.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tfjob::state {

inline constexpr int64_t kGoodStepsToGrow = 2000;
inline constexpr double kLeastLossScale = 1, kMostLossScale = 0x1p126;

struct LossScale {
  double scale = 32768;    // a power of two
  int64_t good_steps = 0;  // since the scale last changed; below kGoodStepsToGrow

  bool operator==(const LossScale&) const = default;

  // Returns the scale after a step, given whether its gradients were finite.
  LossScale After(bool finite) const {
    if (!finite) return {.scale = std::max(scale / 2, kLeastLossScale)};
    if (good_steps + 1 < kGoodStepsToGrow) return {.scale = scale, .good_steps = good_steps + 1};
    return {.scale = std::min(scale * 2, kMostLossScale)};
  }
  // Returns whether these values are valid. Call it for values from a file or a peer.
  bool IsValid() const {
    return scale > 0 && scale <= kMostLossScale && good_steps >= 0 && good_steps < kGoodStepsToGrow;
  }
};

}  // namespace tfjob::state
