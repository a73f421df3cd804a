// Defines the layer that creates masks.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Masks each step whose elements all equal mask_value, and sets these elements to 0. A step
// consists of the elements along the last axis.
struct Masking {
  static constexpr std::string_view kClass = "Masking";
  double mask_value = 0;

  void Arguments(ArgumentVisitor& visitor) { visitor.Number("mask_value", mask_value, {}); }
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(LayerCall& call) const;
};

}  // namespace tfjob::model::layers
