#include <algorithm>

#include "runtime/graph/gradient_functions.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// Returns the input's shape with the reduced axes as 1, whatever keep_dims was.
Shape KeptShape(GradientContext& c) {
  std::vector<int64_t> dims = c.b.shape(c.input(0)).dims();
  for (int64_t axis : c.node.attributes.Get("axes", std::vector<int64_t>())) {
    dims[static_cast<size_t>(axis)] = 1;
  }
  return Shape(std::move(dims));
}

Output Kept(GradientContext& c, Output reduced) {
  const Shape shape = KeptShape(c);
  return c.b.shape(reduced) == shape ? reduced : Reshape(c.b, reduced, shape);
}

}  // namespace

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

Gradient SumGradient(GradientContext& c) {
  return {BroadcastTo(c.b, Kept(c, c.dy()), c.b.shape(c.input(0)))};
}

Gradient MeanGradient(GradientContext& c) {
  const Shape shape = c.b.shape(c.input(0));
  const double count = static_cast<double>(shape.num_elements()) /
                       static_cast<double>(std::max<int64_t>(1, c.b.shape(c.dy()).num_elements()));
  const Output part = Mul(c.b, c.dy(), Scalar(c.b, c.b.dtype(c.dy()), 1 / count));
  return {BroadcastTo(c.b, Kept(c, part), shape)};
}

// dy in equal parts to the elements that are the extreme
Gradient ExtremeGradient(GradientContext& c) {
  const DType dtype = c.b.dtype(c.dy());
  const Output is_extreme = Cast(c.b, Equal(c.b, c.input(0), Kept(c, c.output(0))), dtype);
  const Output count =
      Sum(c.b, is_extreme, c.node.attributes.Get("axes", std::vector<int64_t>()), true);
  return {Mul(c.b, is_extreme, Div(c.b, Kept(c, c.dy()), count))};
}

Gradient ReshapeGradient(GradientContext& c) {
  return {Reshape(c.b, c.dy(), c.b.shape(c.input(0)))};
}

Gradient TransposeGradient(GradientContext& c) {
  const auto perm = c.node.attributes.Get("perm", std::vector<int64_t>());
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return {Transpose(c.b, c.dy(), std::move(inverse))};
}

Gradient BroadcastToGradient(GradientContext& c) {
  return {SumTo(c.b, c.dy(), c.b.shape(c.input(0)))};
}

}  // namespace tfjob::graph
