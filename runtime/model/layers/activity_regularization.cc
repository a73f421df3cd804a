#include "runtime/model/layers/activity_regularization.h"

namespace tfjob::model::layers {

void ActivityRegularization::Arguments(ArgumentVisitor& visitor) {
  const NumberRule factor{.least = 0, .expected = "a number of at least 0"};
  visitor.Number("l1", l1, factor);
  visitor.Number("l2", l2, factor);
}

graph::Output ActivityRegularization::Apply(LayerCall& call) const {
  const Regularizer regularizer{.kind = Regularizer::Kind::kL1L2, .l1 = l1, .l2 = l2};
  call.penalties.push_back(ActivityPenalty(call.b, regularizer, call.x()));
  return call.x();
}

}  // namespace tfjob::model::layers
