#include "runtime/model/layers/activations.h"

#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/axes.h"

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
  visitor.Rules("alpha", alpha_rules);
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
  return {{.name = "alpha",
           .shape = Shape(std::move(dims)),
           .initializer = alpha_initializer,
           .rules = alpha_rules}};
}

graph::Output PReLU::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  const graph::Output positive = graph::Relu(b, call.x());
  // Compute min(x, 0) as -relu(-x), because x - relu(x) would suffer from cancellation.
  const graph::Output negative = graph::Neg(b, graph::Relu(b, graph::Neg(b, call.x())));
  return graph::Add(b, positive, graph::Mul(b, call.variables[0], negative));
}

void Softmax::Arguments(ArgumentVisitor& visitor) {
  visitor.Axes("axis", axis);
  visitor.Ignored("robust_masking");  // from tf.keras 2; no effect on masks of 0 and 1
}

void Softmax::CallArguments(CallVisitor& visitor) {
  visitor.Input("inputs", inputs, /*required=*/true);
  visitor.Input("mask", mask);
}

StatusOr<std::vector<TensorType>> Softmax::OutputTypes(std::span<const TensorType> in) const {
  const size_t expected = mask == kNoInput ? 1 : 2;
  if (in.size() != expected)
    return InvalidArgument("expected ", expected, " inputs, got ", in.size());
  RETURN_IF_ERROR(ExpectOneInput(in.subspan(0, 1), false));
  RETURN_IF_ERROR(AxesOfBatch(axis, in[0].shape).status());
  if (mask == kNoInput) return std::vector{in[0]};
  const Shape& shape = in[1].shape;
  const StatusOr<Shape> broadcast = graph::BroadcastShapes(in[0].shape, shape);
  if (shape.rank() != in[0].shape.rank() || !broadcast.ok() || *broadcast != in[0].shape) {
    return InvalidArgument("expected a mask that broadcasts to ", in[0].shape.ToString(), ", got ",
                           in[1].ToString());
  }
  return std::vector{in[0]};
}

graph::Output Softmax::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  const std::vector<int64_t> axes = *AxesOfBatch(axis, call.ExampleShape());
  if (mask != kNoInput)
    return MaskedSoftmax(b, call.x(), call.inputs[static_cast<size_t>(mask)], axes);
  if (!call.mask().valid()) return SoftmaxOver(b, call.x(), axes);
  if (b.shape(call.mask()) != b.shape(call.x())) {
    return b.Fail(InvalidArgument("Softmax needs a mask of the shape of its input ",
                                  b.shape(call.x()).ToString(), ", got ",
                                  b.shape(call.mask()).ToString()));
  }
  return MaskedSoftmax(b, call.x(), call.mask(), axes);
}

}  // namespace tfjob::model::layers
