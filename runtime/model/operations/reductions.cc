// Defines functions of keras.ops that reduce axes to one element, or select elements of an axis.
#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/operations/operation_table.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;
using Outputs = std::vector<Output>;

// ---- products and norms

// Returns the products of the elements of the rows of x [n, size], as [n, 1]. Multiplies the halves
// of the rows again and again.
Output ProductOfRows(Builder& b, Output x) {
  for (;;) {
    if (!b.ok() || !x.valid()) return {};
    const int64_t rows = b.shape(x).dim(0), size = b.shape(x).dim(1), half = size / 2;
    if (size == 0) return Fill(b, b.dtype(x), {rows, 1}, 1);
    if (size == 1) return x;
    Output product =
        Mul(b, Slice(b, x, {0, 0}, {rows, half}), Slice(b, x, {0, half}, {rows, half}));
    if (size % 2 == 1) product = Concat(b, {product, Slice(b, x, {0, size - 1}, {rows, 1})}, 1);
    x = product;
  }
}

void ProdArguments(Operation& operation, ArgumentVisitor& visitor) {
  ReductionArguments(operation, visitor);
  visitor.Only("dtype", "null");
}
// Moves the reduced axes to the end.
Outputs Prod(const OperationCall& call) {
  Builder& b = call.b;
  const bool truth = b.dtype(call.x[0]) == DType::kBool;
  const Output x = truth ? Cast(b, call.x[0], DType::kInt32) : call.x[0];
  const std::vector<int64_t> dims = b.shape(x).dims();
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<bool> reduced(dims.size(), call.operation.axes.empty());
  for (const int64_t axis : call.operation.axes)
    reduced[static_cast<size_t>(AxisOf(call, axis, rank))] = true;
  std::vector<int64_t> order, last, result;
  int64_t size = 1, rows = 1;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    (reduced[axis] ? last : order).push_back(static_cast<int64_t>(axis));
    (reduced[axis] ? size : rows) *= dims[axis];
    if (!reduced[axis]) result.push_back(dims[axis]);
    if (reduced[axis] && call.operation.keepdims) result.push_back(1);
  }
  order.insert(order.end(), last.begin(), last.end());
  const Output table = graph::Reshape(b, Transpose(b, x, std::move(order)), {rows, size});
  return {graph::Reshape(b, ProductOfRows(b, table), Shape(std::move(result)))};
}

void NormArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Optional("ord", operation.order_of_norm,
                   {.least = 1, .expected = "null or a number of at least 1"});
  visitor.OptionalAxes("axis", operation.axes);
  visitor.Flag("keepdims", operation.keepdims);
}
Outputs Norm(const OperationCall& call) {
  Builder& b = call.b;
  const Operation& operation = call.operation;
  const bool whole = !IsFloatType(b.dtype(call.x[0]));
  const Output x = whole ? Cast(b, call.x[0], DType::kFloat32) : call.x[0];
  const size_t axes = operation.axes.empty() ? b.shape(x).dims().size() : operation.axes.size();
  const double order = operation.order_of_norm.value_or(2);
  if (axes > 2 || (axes > 1 && operation.order_of_norm))
    return {b.Fail(InvalidArgument("expected one axis, or two axes and ord null"))};
  const auto sum = [&](Output terms) {
    return graph::Sum(b, terms, operation.axes, operation.keepdims);
  };
  if (order == 1) return {sum(Abs(b, x))};
  if (order == 2) return {Sqrt(b, sum(Square(b, x)))};
  const auto number = [&](double value) { return Scalar(b, b.dtype(x), value); };
  return {Pow(b, sum(Pow(b, Abs(b, x), number(order))), number(1 / order))};
}

// ---- counts and indices

void CountArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.OptionalAxes("axis", operation.axes);
}
Outputs CountNonzero(const OperationCall& call) {
  Builder& b = call.b;
  const Output differs = Cast(b, Cast(b, call.x[0], DType::kBool), DType::kInt32);
  return {graph::Sum(b, differs, call.operation.axes, false)};
}

// ---- selection

void TakeArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integer("axis", operation.axis, {.required = true});
}

// Returns the indices of Take, counted from 0, or an empty list after an error.
std::vector<int64_t> IndicesOf(const OperationCall& call, int64_t size) {
  const CallOperand& given = call.operation.operands[1];
  std::vector<double> numbers = given.array;
  if (numbers.empty()) numbers.push_back(given.number);
  std::vector<int64_t> indices;
  for (const double number : numbers) {
    const double index = number < 0 ? number + static_cast<double>(size) : number;
    if (!(index >= 0) || index >= static_cast<double>(size)) {
      call.b.Fail(
          InvalidArgument("index ", number, " does not fit an axis of ", size, " elements"));
      return {};
    }
    indices.push_back(static_cast<int64_t>(index));
  }
  return indices;
}

// Moves the axis to the front, gathers the elements, and moves the axes of the indices to the place
// of the axis.
Outputs Take(const OperationCall& call) {
  Builder& b = call.b;
  const CallOperand& given = call.operation.operands[1];
  const std::vector<int64_t> dims = b.shape(call.x[0]).dims();
  const int64_t axis = AxisOf(call, call.operation.axis, static_cast<int64_t>(dims.size()));
  if (axis == 0) return {b.Fail(InvalidArgument("expected an axis other than the batch, axis 0"))};
  if (given.input != kNoInput || !given.integer)
    return {b.Fail(InvalidArgument("expected indices that are constant integers"))};
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> indices = IndicesOf(call, dims[at]);
  const auto count = static_cast<int64_t>(indices.size());
  if (!b.ok() || count > kLongestConstant)
    return {b.Fail(InvalidArgument("expected at most ", kLongestConstant, " indices"))};
  Tensor list(DType::kInt64, {count});
  std::ranges::copy(indices, list.data<int64_t>().begin());
  std::vector<int64_t> swapped(dims.size()), moved = dims;
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[0], swapped[at]);
  std::swap(moved[0], moved[at]);
  int64_t others = 1;
  for (size_t i = 1; i < moved.size(); ++i) others *= moved[i];
  const Output front = graph::Reshape(b, Transpose(b, call.x[0], swapped), {moved[0], others});
  moved[0] = count;
  const Output rows = graph::Reshape(b, Gather(b, front, Const(b, std::move(list))), Shape(moved));
  std::vector<int64_t> result(dims.begin(), dims.begin() + axis);
  result.insert(result.end(), given.dims.begin(), given.dims.end());
  result.insert(result.end(), dims.begin() + axis + 1, dims.end());
  return {graph::Reshape(b, Transpose(b, rows, swapped), Shape(std::move(result)))};
}

void SliceArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integers("shape", operation.newshape, {.required = true});
}
// Returns the key of the elements from index `start` on along an axis of this size. A count of -1
// means all elements that follow. Returns nullopt if the axis does not have these elements.
std::optional<KeyPart> PartOf(int64_t start, int64_t count, int64_t size) {
  if (start < 0 || start > size || count < -1 || count > size - start) return std::nullopt;
  if (start == 0 && count == -1) return KeyPart{};
  return KeyPart{.start = start, .stop = count == -1 ? size : start + count};
}
Outputs SliceOf(const OperationCall& call) {
  Builder& b = call.b;
  const std::vector<int64_t> dims = b.shape(call.x[0]).dims();
  const std::vector<int64_t>& shape = call.operation.newshape;
  const std::vector<KeyPart>& starts = call.operation.key;
  bool fits = shape.size() == dims.size() && starts.size() == dims.size();
  std::vector<KeyPart> key;
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    const auto part = PartOf(starts[i].index, shape[i], dims[i]);
    fits = starts[i].kind == KeyPart::Kind::kIndex && part;
    if (fits) key.push_back(*part);
  }
  if (!fits)
    return {b.Fail(InvalidArgument("expected an index and a number of elements for each of the ",
                                   dims.size(), " axes, within the axis"))};
  return {GetItem(b, call.x[0], key)};
}

constexpr CallForm kReduced = CallForm::kUnary;

constexpr OperationKind kReductionOperations[] = {
    {"numpy", "Prod", kReduced, ProdArguments, Prod},
    {"linalg", "Norm", kReduced, NormArguments, Norm},
    {"numpy", "CountNonzero", kReduced, CountArguments, CountNonzero},
    {"numpy", "Take", CallForm::kTake, TakeArguments, Take},
    {"core", "Slice", CallForm::kStarts, SliceArguments, SliceOf},
};

}  // namespace

std::span<const OperationKind> ReductionOperations() {
  return kReductionOperations;
}

}  // namespace tfjob::model::layers
