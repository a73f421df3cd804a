#include "runtime/model/layers/activations.h"

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

constexpr NumberRule kZeroOrMore = {.least = 0, .expected = "a number of at least 0"};

}  // namespace

void Activation::Arguments(ArgumentVisitor& visitor) {
  visitor.Activation("activation", activation, /*required=*/true);
}
StatusOr<Shape> Activation::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(CheckActivation(activation, in));
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

void LeakyReLU::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("negative_slope", negative_slope, kZeroOrMore);
  visitor.OldName("alpha", negative_slope, kZeroOrMore);
}

void PReLU::Arguments(ArgumentVisitor& visitor) {
  visitor.Initializer("alpha_initializer", alpha_initializer);
  visitor.Only("alpha_regularizer", "null");
  visitor.Only("alpha_constraint", "null");
  visitor.Axes("shared_axes", shared_axes);
}

StatusOr<Shape> PReLU::OutputShape(const Shape& in) const {
  for (const int64_t axis : shared_axes) {
    if (axis >= 1 && axis <= in.rank()) continue;
    return InvalidArgument("expected shared_axes from 1 to ", in.rank(), ", got ", axis);
  }
  return in;
}

std::vector<VariableSpec> PReLU::Variables(const Shape& in) const {
  std::vector<int64_t> dims = in.dims();
  for (const int64_t axis : shared_axes) dims[static_cast<size_t>(axis) - 1] = 1;
  return {{.name = "alpha", .shape = Shape(std::move(dims)), .initializer = alpha_initializer}};
}

graph::Output PReLU::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  const graph::Output positive = graph::Relu(b, call.x());
  // min(x, 0) is x - relu(x) without cancellation.
  const graph::Output negative = graph::Neg(b, graph::Relu(b, graph::Neg(b, call.x())));
  return graph::Add(b, positive, graph::Mul(b, call.variables[0], negative));
}

StatusOr<Shape> Softmax::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(CheckActivation(ActivationKind::kSoftmax, in));
  return in;
}
graph::Output Softmax::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  if (!call.mask().valid()) return graph::Softmax(b, call.x());
  if (b.shape(call.mask()) != b.shape(call.x())) {
    return b.Fail(InvalidArgument("Softmax needs a mask of the shape of its input ",
                                  b.shape(call.x()).ToString(), ", got ",
                                  b.shape(call.mask()).ToString()));
  }
  const graph::Output unlikely = Scalar(b, b.dtype(call.x()), -1e9);
  return graph::Softmax(b, Select(b, call.mask(), call.x(), unlikely));
}

}  // namespace tfjob::model::layers
