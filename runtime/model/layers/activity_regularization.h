// Defines a layer that does nothing except add a penalty to the loss.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Returns its input. Adds (l1 Σ |x| + l2 Σ x²) / batch size to the loss.
struct ActivityRegularization {
  static constexpr std::string_view kClass = "ActivityRegularization";
  static constexpr bool kSupportsMasking = true;
  double l1 = 0, l2 = 0;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(LayerCall& call) const;
};

}  // namespace tfjob::model::layers
