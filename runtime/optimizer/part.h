// Names the parts of an optimizer's update. With gradient_accumulation_steps, an update may be
// divided into two parts, so that the mean of the gradients can be clipped in between.
#pragma once

#include <cstdint>

#include "runtime/tensor/attributes.h"

namespace tfjob::optimizer {

enum class Part {
  kWhole,
  kAccumulate,  // only adds the gradient to the accumulator
  kUpdate,      // computes the mean of the gradients, and completes the update
};

// The attribute of ApplyOptimizer and ApplyOptimizerRows that specifies the part, as an int64. If
// the attribute is absent, the part is kWhole.
inline constexpr char kPart[] = "part";

inline Part PartOf(const Attributes& attributes) {
  return static_cast<Part>(attributes.Get<int64_t>(kPart, 0));
}

}  // namespace tfjob::optimizer
