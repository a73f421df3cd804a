// Defines the scalar product of two inputs along an axis.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Sums the products of the elements along one axis of each input. The axes of the output are the
// remaining axes of the first input, followed by those of the second input; if there are none, the
// output has the shape [1]. With normalize, each vector along the axes is first divided by its
// length, or by 1e-7 if the length is smaller.
struct Dot {
  static constexpr std::string_view kClass = "Dot";
  std::vector<int64_t> axes = {-1};  // one for both inputs, or one per input; the batch is axis 0
  bool normalize = false;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
