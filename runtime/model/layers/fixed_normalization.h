// Defines normalisation with moments that do not change during training.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Computes (x - mean) / √variance or, with invert, x·√variance + mean, where the root is at least
// 1e-7. There is one mean and one variance per element of the axes; if there is no axis, a single
// mean and variance apply to all elements.
//
// A layer without the arguments `mean` and `variance` is an adapted layer of Keras: the moments are
// variables that are not trained. Initially they are 0 and 1; a weights file sets them. Keras also
// stores `count`, the number of adapted values, which Keras 3 no longer uses.
struct Normalization {
  static constexpr std::string_view kClass = "Normalization";
  static constexpr bool kComputesInFloat32 = true;
  static constexpr bool kSupportsMasking = true;
  std::vector<int64_t> axis = {-1};    // the batch is axis 0
  std::vector<double> mean, variance;  // one element, or one per element of the last axis
  bool invert = false;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
