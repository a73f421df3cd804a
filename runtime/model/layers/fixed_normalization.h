// Defines normalisation with moments that are arguments of the layer.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Computes (x - mean) / √variance or, with invert, x·√variance + mean, where the root is at least
// 1e-7. There is one mean and one variance per element of the axis; if there is no axis, a single
// mean and variance apply to all elements.
struct Normalization {
  static constexpr std::string_view kClass = "Normalization";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kSupportsMasking = true;
  std::vector<int64_t> axis = {-1};  // the batch is axis 0
  std::vector<double> mean, variance;
  bool invert = false;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
