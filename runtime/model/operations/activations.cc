// Defines the functions of keras.ops.nn.
#include "runtime/graph/gelu.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/vector_normalization.h"
#include "runtime/model/operations/operation_table.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;
using Outputs = std::vector<Output>;

constexpr std::string_view kNotTheBatch =
    "expected a function of each example, so not along the batch, which is axis 0";

Output NumberLike(Builder& b, Output x, double value) {
  return Scalar(b, b.dtype(x), value);
}

template <ActivationKind kKind>
Outputs Activated(const OperationCall& call) {
  return {Activate(call.b, kKind, call.x[0])};
}

// Applies `kFunction`, which operates on the last axis, to the axis of the operation instead.
template <Output (*kFunction)(Builder&, Output)>
Outputs AlongAxis(const OperationCall& call) {
  const int64_t axis = AxisOf(call, call.operation.axis, call.b.shape(call.x[0]).rank());
  if (axis == 0) return {call.b.Fail(InvalidArgument(kNotTheBatch))};
  return {OverLastAxis(call.b, call.x[0], {axis}, kFunction)};
}

void GeluArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Flag("approximate", operation.approximate);
}
Outputs GeluOf(const OperationCall& call) {
  if (!call.operation.approximate) return Activated<ActivationKind::kGelu>(call);
  return {graph::ApproximateGelu(call.b, call.x[0])};
}

void LeakyReluArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Number("negative_slope", operation.slope, {});
}
Outputs LeakyReluOf(const OperationCall& call) {
  return {LeakyRelu(call.b, call.x[0], call.operation.slope)};
}

void AlphaArgument(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Number("alpha", operation.alpha, {});
}
Outputs EluOf(const OperationCall& call) {
  return {Elu(call.b, call.x[0], call.operation.alpha)};
}
// Computes CELU (Barron, "Continuously Differentiable Exponential Linear Units", 2017).
Outputs CeluOf(const OperationCall& call) {
  Builder& b = call.b;
  const Output alpha = NumberLike(b, call.x[0], call.operation.alpha);
  return {Mul(b, Elu(b, Div(b, call.x[0], alpha), 1), alpha)};
}

void ThresholdArgument(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Number("threshold", operation.threshold, {});
}
Outputs HardShrinkOf(const OperationCall& call) {
  return {HardShrink(call.b, call.x[0], call.operation.threshold)};
}
Outputs SoftShrinkOf(const OperationCall& call) {
  return {SoftShrink(call.b, call.x[0], call.operation.threshold)};
}

void ThresholdArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Number("threshold", operation.threshold, {.required = true});
  visitor.Number("default_value", operation.default_value, {.required = true});
}
Outputs Thresholded(const OperationCall& call) {
  Builder& b = call.b;
  const Output x = call.x[0];
  return {Select(b, Greater(b, x, NumberLike(b, x, call.operation.threshold)), x,
                 NumberLike(b, x, call.operation.default_value))};
}

void SquareplusArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Number("b", operation.b, {});
}
Outputs SquareplusOf(const OperationCall& call) {
  return {Squareplus(call.b, call.x[0], call.operation.b)};
}

// Computes GLU (Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017): the
// first half of the axis, multiplied by the sigmoid of the second half.
Outputs Glu(const OperationCall& call) {
  Builder& b = call.b;
  const Shape shape = b.shape(call.x[0]);
  const auto axis = static_cast<size_t>(AxisOf(call, call.operation.axis, shape.rank()));
  std::vector<int64_t> begin(shape.dims().size()), size = shape.dims();
  if (size[axis] % 2 != 0)
    return {b.Fail(InvalidArgument("expected an even number of elements, got ", size[axis]))};
  size[axis] /= 2;
  const Output value = Slice(b, call.x[0], begin, size);
  begin[axis] = size[axis];
  return {Mul(b, value, Sigmoid(b, Slice(b, call.x[0], begin, size)))};
}

void NormalizeArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Axes("axis", operation.axes);
  visitor.Integer("order", operation.order,
                  {.least = 1, .most = 2, .expected = "1 or 2 (other orders are not supported)"});
  visitor.Optional("epsilon", operation.epsilon, {.least = 0, .expected = "a number"});
}
// Divides x by its norm, or by epsilon if the norm is smaller. Order 1 with several axes is not
// supported, because Keras then computes a matrix norm: the largest sum of a column.
Outputs Normalize(const OperationCall& call) {
  Builder& b = call.b;
  const Output x = call.x[0];
  const double epsilon = call.operation.epsilon.value_or(1e-7);
  const std::vector<int64_t>& axes = call.operation.axes;
  for (const int64_t axis : axes)
    if (AxisOf(call, axis, b.shape(x).rank()) == 0) return {b.Fail(InvalidArgument(kNotTheBatch))};
  if (axes.empty()) return {b.Fail(InvalidArgument(kNotTheBatch))};
  if (call.operation.order == 2) return {Normalized(b, x, axes, epsilon)};
  if (axes.size() > 1)
    return {b.Fail(InvalidArgument("expected one axis with order 1, got ", axes.size()))};
  return {Div(b, x, graph::Maximum(b, Sum(b, Abs(b, x), axes, true), NumberLike(b, x, epsilon)))};
}

void OneHotArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integer("num_classes", operation.count,
                  {.least = 1,
                   .most = kLongestConstant,
                   .expected = "an integer from 1 to 1048576",
                   .required = true});
  visitor.Axis("axis", operation.axis);
  visitor.Text("dtype", operation.type_name, /*required=*/false);
  visitor.Only("sparse", "false");
}
// Encodes classes as one-hot rows. A class that is negative or too large becomes a row of zeros.
Outputs OneHot(const OperationCall& call) {
  Builder& b = call.b;
  const std::string& name = call.operation.type_name;
  const std::optional<DType> dtype = name.empty() ? DType::kFloat32 : ParseDType(name);
  if (!dtype) return {b.Fail(InvalidArgument("type ", name, " is not supported"))};
  std::vector<int64_t> dims = b.shape(call.x[0]).dims();
  const auto rank = static_cast<int64_t>(dims.size()) + 1;
  const auto axis = AxisOf(call, call.operation.axis, rank);
  dims.insert(dims.begin() + axis, 1);
  std::vector<int64_t> along(static_cast<size_t>(rank), 1);
  along[static_cast<size_t>(axis)] = call.operation.count;
  Tensor classes(DType::kInt64, Shape(along));
  for (int64_t i = 0; i < call.operation.count; ++i)
    classes.data<int64_t>()[static_cast<size_t>(i)] = i;
  const Output ids = Cast(b, graph::Reshape(b, call.x[0], Shape(dims)), DType::kInt64);
  return {Cast(b, Equal(b, ids, Const(b, std::move(classes))), *dtype)};
}

constexpr CallForm kOne = CallForm::kUnary;

constexpr OperationKind kActivationOperations[] = {
    {"nn", "Relu", kOne, nullptr, Activated<ActivationKind::kRelu>},
    {"nn", "Relu6", kOne, nullptr, Activated<ActivationKind::kRelu6>},
    {"nn", "Sigmoid", kOne, nullptr, Activated<ActivationKind::kSigmoid>},
    {"nn", "Silu", kOne, nullptr, Activated<ActivationKind::kSilu>},
    {"nn", "Softplus", kOne, nullptr, Activated<ActivationKind::kSoftplus>},
    {"nn", "Softsign", kOne, nullptr, Activated<ActivationKind::kSoftsign>},
    {"nn", "Selu", kOne, nullptr, Activated<ActivationKind::kSelu>},
    {"nn", "LogSigmoid", kOne, nullptr, Activated<ActivationKind::kLogSigmoid>},
    {"nn", "HardSigmoid", kOne, nullptr, Activated<ActivationKind::kHardSigmoid>},
    {"nn", "HardSilu", kOne, nullptr, Activated<ActivationKind::kHardSilu>},
    {"nn", "HardTanh", kOne, nullptr, Activated<ActivationKind::kHardTanh>},
    {"nn", "TanhShrink", kOne, nullptr, Activated<ActivationKind::kTanhShrink>},
    {"nn", "SparsePlus", kOne, nullptr, Activated<ActivationKind::kSparsePlus>},
    {"nn", "SparseSigmoid", kOne, nullptr, Activated<ActivationKind::kSparseSigmoid>},
    {"nn", "LeakyRelu", kOne, LeakyReluArguments, LeakyReluOf},
    {"nn", "Elu", kOne, AlphaArgument, EluOf},
    {"nn", "Celu", kOne, AlphaArgument, CeluOf},
    {"nn", "Gelu", kOne, GeluArguments, GeluOf},
    {"nn", "HardShrink", kOne, ThresholdArgument, HardShrinkOf},
    {"nn", "SoftShrink", kOne, ThresholdArgument, SoftShrinkOf},
    {"nn", "Threshold", kOne, ThresholdArguments, Thresholded},
    {"nn", "Squareplus", kOne, SquareplusArguments, SquareplusOf},
    {"nn", "Softmax", kOne, AxisArgument, AlongAxis<graph::Softmax>},
    {"nn", "LogSoftmax", kOne, AxisArgument, AlongAxis<graph::LogSoftmax>},
    {"nn", "Sparsemax", kOne, AxisArgument, AlongAxis<Sparsemax>},
    {"nn", "Glu", kOne, AxisArgument, Glu},
    {"nn", "Normalize", kOne, NormalizeArguments, Normalize},
    {"nn", "OneHot", kOne, OneHotArguments, OneHot},
};

}  // namespace

std::span<const OperationKind> ActivationOperations() {
  return kActivationOperations;
}

}  // namespace tfjob::model::layers
