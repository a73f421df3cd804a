#include "runtime/model/layers/activations.h"

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

Status NeedsAnAxis(const Shape& in) {
  if (in.rank() > 0) return OkStatus();
  return InvalidArgument("softmax expects examples of rank 1 or more, got shape ", in.ToString());
}

constexpr NumberRule kZeroOrMore = {.least = 0, .expected = "a number of at least 0"};

}  // namespace

void Activation::Arguments(ArgumentVisitor& visitor) {
  visitor.Activation("activation", activation, /*required=*/true);
}
StatusOr<Shape> Activation::OutputShape(const Shape& in) const {
  if (activation == ActivationKind::kSoftmax) RETURN_IF_ERROR(NeedsAnAxis(in));
  return in;
}
graph::Output Activation::Apply(const LayerCall& call) const {
  return Activate(call.b, activation, call.x());
}

void ReLU::Arguments(ArgumentVisitor& visitor) {
  visitor.Optional("max_value", max_value, kZeroOrMore);
  visitor.Number("negative_slope", negative_slope, kZeroOrMore);
  visitor.Number("threshold", threshold, kZeroOrMore);
}

graph::Output ReLU::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  const graph::Output x = call.x();
  const auto scalar = [&](double value) { return graph::Scalar(b, b.dtype(x), value); };
  graph::Output y;
  if (negative_slope == 0 && threshold == 0) {
    y = graph::Relu(b, x);
  } else {
    graph::Output below = graph::Fill(b, b.dtype(x), b.shape(x), 0);
    if (negative_slope != 0)
      below = graph::Mul(b, graph::Sub(b, x, scalar(threshold)), scalar(negative_slope));
    y = graph::Select(b, graph::Greater(b, x, scalar(threshold)), x, below);
  }
  return max_value ? graph::Minimum(b, y, scalar(*max_value)) : y;
}

StatusOr<Shape> Softmax::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(NeedsAnAxis(in));
  return in;
}
graph::Output Softmax::Apply(const LayerCall& call) const {
  return graph::Softmax(call.b, call.x());
}

}  // namespace tfjob::model::layers
