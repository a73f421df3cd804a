#include "runtime/graph/family.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || IsHalf(dtype);
}

bool IsNumeric(DType dtype) {
  return IsFloat(dtype) || dtype == DType::kInt32 || dtype == DType::kInt64;
}

StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const int64_t left = i <= a.rank() ? a.dim(-i) : 1;
    const int64_t right = i <= b.rank() ? b.dim(-i) : 1;
    if (left != right && left != 1 && right != 1) {
      return InvalidArgument(
          "expected shapes that broadcast (each dimension equal or 1, from the "
          "last one on), got ",
          left, " against ", right, ", ", i - 1, " dimensions before the last");
    }
    dims[static_cast<size_t>(rank - i)] = left == 1 ? right : left;
  }
  return Shape(std::move(dims));
}

Status ExpectNoNegative(const Shape& shape) {
  const bool negative = std::ranges::any_of(shape.dims(), [](int64_t dim) { return dim < 0; });
  if (!negative) return OkStatus();
  return InvalidArgument("expected a shape without negative dimensions, got ", shape.ToString());
}

Gradient NoGradient(GradientContext& c) {
  return Gradient(c.node.inputs.size());
}

Output SumTo(Builder& b, Output gradient, const Shape& shape) {
  const Shape from = b.shape(gradient);
  if (from == shape) return gradient;
  std::vector<int64_t> axes;
  const int added = from.rank() - shape.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (axis < added || (shape.dim(axis - added) == 1 && from.dim(axis) != 1)) axes.push_back(axis);
  }
  const Output sum = axes.empty() ? gradient : Sum(b, gradient, std::move(axes));
  return b.shape(sum) == shape ? sum : Reshape(b, sum, shape);
}

Output Unary(Builder& b, std::string_view op, Output x) {
  return b.Add(op, {x});
}

Output Binary(Builder& b, std::string_view op, Output x, Output y) {
  return b.Add(op, {x, y});
}

}  // namespace tfjob::graph
