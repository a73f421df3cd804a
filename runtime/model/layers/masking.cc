#include "runtime/model/layers/masking.h"

#include "runtime/model/layer/mask.h"

namespace tfjob::model::layers {

StatusOr<Shape> Masking::OutputShape(const Shape& in) const {
  if (in.rank() >= 2) return in;
  return InvalidArgument("expected examples of shape [steps,…,elements], got ", in.ToString());
}

graph::Output Masking::Apply(LayerCall& call) const {
  const graph::Output mask = AnyOfLastAxis(call.b, NotEqual(call.b, call.x(), mask_value));
  call.output_masks = {mask};
  return Masked(call.b, mask, call.x());
}

}  // namespace tfjob::model::layers
