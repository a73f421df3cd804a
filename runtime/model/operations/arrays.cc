// Defines functions of keras.ops that rearrange arrays or compute statistics.
#include <algorithm>
#include <cmath>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/flip.h"
#include "runtime/model/operations/operation_table.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;
using Outputs = std::vector<Output>;

// ---- types

void ConvertArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Text("dtype", operation.type_name, /*required=*/false);
  visitor.Only("sparse", "null");
  visitor.Only("ragged", "null");
}
Outputs Converted(const OperationCall& call) {
  const std::string& name = call.operation.type_name;
  if (name.empty()) return {graph::Identity(call.b, call.x[0])};
  const std::optional<DType> dtype = ParseDType(name);
  if (!dtype) return {call.b.Fail(InvalidArgument("type ", name, " is not supported"))};
  return {Cast(call.b, call.x[0], *dtype)};
}

// ---- statistics

Output Variance(const OperationCall& call) {
  Builder& b = call.b;
  const Output x = call.x[0];
  const Output from_mean = Sub(b, x, graph::Mean(b, x, call.operation.axes, true));
  return graph::Mean(b, Square(b, from_mean), call.operation.axes, call.operation.keepdims);
}
Outputs VarianceOf(const OperationCall& call) {
  return {Variance(call)};
}
Outputs StandardDeviation(const OperationCall& call) {
  return {Sqrt(call.b, Variance(call))};
}

// Computes log Σ exp(x). Subtracts the largest element first, so that exp does not overflow. If the
// largest element is infinite or NaN, subtracts 0 instead, because the difference of two infinities
// would be NaN.
Outputs LogSumExp(const OperationCall& call) {
  Builder& b = call.b;
  const std::vector<int64_t>& axes = call.operation.axes;
  const Output largest = graph::Max(b, call.x[0], axes, true);
  const DType dtype = b.dtype(largest);
  const Output finite = Less(b, Abs(b, largest), Scalar(b, dtype, INFINITY));
  const Output most = Select(b, finite, largest, Scalar(b, dtype, 0));
  const Output sum = graph::Sum(b, Exp(b, Sub(b, call.x[0], most)), axes, true);
  const Output result = graph::Add(b, Log(b, sum), most);
  return {call.operation.keepdims ? result : graph::Sum(b, result, axes, false)};
}

void PositionArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integer("axis", operation.axis, {.required = true});
  visitor.Flag("keepdims", operation.keepdims);
}
// Returns the positions of the largest elements of x, which has the shape of the operand.
Outputs PositionOfLargest(const OperationCall& call, Output x) {
  Builder& b = call.b;
  std::vector<int64_t> dims = b.shape(x).dims();
  const int64_t axis = AxisOf(call, call.operation.axis, static_cast<int64_t>(dims.size()));
  Output index = Cast(b, ArgMax(b, x, static_cast<int>(axis)), DType::kInt32);
  dims[static_cast<size_t>(axis)] = 1;
  return {call.operation.keepdims ? graph::Reshape(b, index, Shape(std::move(dims))) : index};
}
Outputs Argmax(const OperationCall& call) {
  return PositionOfLargest(call, call.x[0]);
}
Outputs Argmin(const OperationCall& call) {
  return PositionOfLargest(call, Neg(call.b, call.x[0]));
}

Outputs Reciprocal(const OperationCall& call) {
  return {Div(call.b, Scalar(call.b, call.b.dtype(call.x[0]), 1), call.x[0])};
}

// ---- arrangement

// Treats the elements along the axes from `inner` on as a block, and repeats each block `times`
// times. This multiplies the size of axis `grows` by `times`.
Output Repeated(Builder& b, Output x, size_t inner, size_t grows, int64_t times) {
  if (!x.valid()) return x;
  std::vector<int64_t> dims = b.shape(x).dims();
  int64_t left = 1, right = 1, size = 0;
  for (size_t i = 0; i < dims.size(); ++i) (i < inner ? left : right) *= dims[i];
  if (__builtin_mul_overflow(dims[grows], times, &size))
    return b.Fail(InvalidArgument("expected fewer repeats than ", times));
  dims[grows] = size;
  const Output parts = BroadcastTo(b, graph::Reshape(b, x, {left, 1, right}), {left, times, right});
  return graph::Reshape(b, parts, Shape(std::move(dims)));
}

void RepeatArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integer("repeats", operation.count,
                  {.least = 1, .expected = kPositive.expected, .required = true});
  visitor.Integer("axis", operation.axis, {.required = true});
}
Outputs Repeat(const OperationCall& call) {
  const size_t rank = call.b.shape(call.x[0]).dims().size();
  const int64_t axis = AxisOf(call, call.operation.axis, static_cast<int64_t>(rank));
  const auto at = static_cast<size_t>(axis);
  return {Repeated(call.b, call.x[0], at + 1, at, call.operation.count)};
}

void TileArguments(Operation& operation, ArgumentVisitor& visitor) {
  constexpr auto kValid = [](std::span<const int64_t> repeats) {
    return std::ranges::all_of(repeats, [](int64_t n) { return n >= 1; });
  };
  visitor.Integers(
      "repeats", operation.repeats,
      {.valid = kValid, .expected = "a list of integers of at least 1", .required = true});
}
Outputs Tile(const OperationCall& call) {
  Output x = call.x[0];
  const size_t rank = call.b.shape(x).dims().size();
  std::vector<int64_t> repeats = call.operation.repeats;
  if (repeats.size() > rank)
    return {call.b.Fail(InvalidArgument("expected at most ", rank, " repeats, one per axis, got ",
                                        repeats.size()))};
  repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  for (size_t axis = 0; axis < rank; ++axis)
    if (repeats[axis] > 1) x = Repeated(call.b, x, axis, axis, repeats[axis]);
  return {x};
}

void FlipArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Axes("axis", operation.axes);
}
Outputs Flip(const OperationCall& call) {
  Output x = call.x[0];
  const int64_t rank = call.b.shape(x).rank();
  if (call.operation.axes.empty())
    return {call.b.Fail(InvalidArgument("expected an axis: the batch cannot be flipped"))};
  for (const int64_t given : call.operation.axes) {
    const int64_t axis = AxisOf(call, given, rank);
    if (axis == 0) return {call.b.Fail(InvalidArgument("the batch, axis 0, cannot be flipped"))};
    x = Flipped(call.b, x, axis);
  }
  return {x};
}

void RollArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integer("shift", operation.count, {.required = true});
  visitor.Integer("axis", operation.axis, {.required = true});
}
Outputs Roll(const OperationCall& call) {
  Builder& b = call.b;
  const std::vector<int64_t> dims = b.shape(call.x[0]).dims();
  const int64_t axis = AxisOf(call, call.operation.axis, static_cast<int64_t>(dims.size()));
  if (axis == 0) return {b.Fail(InvalidArgument("the batch, axis 0, cannot be rolled"))};
  const auto at = static_cast<size_t>(axis);
  if (dims[at] == 0) return {graph::Identity(b, call.x[0])};
  const int64_t last = ((call.operation.count % dims[at]) + dims[at]) % dims[at];
  if (last == 0) return {graph::Identity(b, call.x[0])};
  std::vector<int64_t> begin(dims.size()), head = dims, tail = dims;
  head[at] = dims[at] - last;
  tail[at] = last;
  const Output first = Slice(b, call.x[0], begin, head);
  begin[at] = head[at];
  return {Concat(b, {Slice(b, call.x[0], begin, tail), first}, axis)};
}

void PadArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Pairs("pad_width", operation.margins);
  visitor.Only("mode", "\"constant\"");
}
Outputs Padded(const OperationCall& call) {
  Builder& b = call.b;
  std::vector<int64_t> before, after;
  for (size_t i = 0; i < call.operation.margins.size(); i += 2) {
    before.push_back(call.operation.margins[i]);
    after.push_back(call.operation.margins[i + 1]);
  }
  return {Pad(b, call.x[0], std::move(before), std::move(after))};
}

void MoveaxisArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Axes("source", operation.source);
  visitor.Axes("destination", operation.destination);
}
Outputs Moveaxis(const OperationCall& call) {
  const Operation& operation = call.operation;
  const int64_t rank = call.b.shape(call.x[0]).rank();
  if (operation.source.size() != operation.destination.size())
    return {call.b.Fail(InvalidArgument("expected as many sources as destinations"))};
  std::vector<int64_t> order(static_cast<size_t>(rank), -1), rest;
  bool differ = true;
  for (size_t i = 0; i < operation.source.size(); ++i) {
    const int64_t from = AxisOf(call, operation.source[i], rank);
    int64_t& to = order[static_cast<size_t>(AxisOf(call, operation.destination[i], rank))];
    differ = differ && to < 0 && std::ranges::find(order, from) == order.end();
    to = from;
  }
  if (!differ)
    return {call.b.Fail(InvalidArgument("expected sources and destinations that differ"))};
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::ranges::find(order, axis) == order.end()) rest.push_back(axis);
  auto next = rest.begin();
  for (int64_t& axis : order)
    if (axis < 0) axis = *next++;
  return {Transpose(call.b, call.x[0], std::move(order))};
}

constexpr CallForm kArray = CallForm::kUnary;

constexpr OperationKind kArrayOperations[] = {
    {"core", "ConvertToTensor", kArray, ConvertArguments, Converted},
    {"numpy", "Var", kArray, ReductionArguments, VarianceOf},
    {"numpy", "Std", kArray, ReductionArguments, StandardDeviation},
    {"math", "Logsumexp", kArray, ReductionArguments, LogSumExp},
    {"numpy", "Argmax", kArray, PositionArguments, Argmax},
    {"numpy", "Argmin", kArray, PositionArguments, Argmin},
    {"numpy", "Reciprocal", kArray, nullptr, Reciprocal},
    {"numpy", "Repeat", kArray, RepeatArguments, Repeat},
    {"numpy", "Tile", kArray, TileArguments, Tile},
    {"numpy", "Flip", kArray, FlipArguments, Flip},
    {"numpy", "Roll", kArray, RollArguments, Roll},
    {"numpy", "Pad", kArray, PadArguments, Padded},
    {"numpy", "Moveaxis", kArray, MoveaxisArguments, Moveaxis},
};

}  // namespace

std::span<const OperationKind> ArrayOperations() {
  return kArrayOperations;
}

}  // namespace tfjob::model::layers
