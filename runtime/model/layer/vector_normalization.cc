#include "runtime/model/layer/vector_normalization.h"

#include <algorithm>
#include <limits>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/axes.h"

namespace tfjob::model::layers {

using graph::Builder;
using graph::Output;

Output Normalized(Builder& b, Output x, const std::vector<int64_t>& axes, double epsilon) {
  // Bound the square, not the root, because the gradient of 1/√0 would be infinite. The bound is at
  // least `least`, because the square of a tiny epsilon may be 0.
  const double least = b.dtype(x) == DType::kFloat64   ? std::numeric_limits<double>::min()
                       : b.dtype(x) == DType::kFloat16 ? 0x1p-24
                                                       : double{std::numeric_limits<float>::min()};
  const Output bound = Scalar(b, b.dtype(x), std::max(epsilon * epsilon, least));
  return Mul(b, x, Rsqrt(b, graph::Maximum(b, Sum(b, Square(b, x), axes, true), bound)));
}

StatusOr<Shape> UnitNormalization::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(AxesOfBatch(axis, in).status());
  return in;
}

Output UnitNormalization::Apply(const LayerCall& call) const {
  return Normalized(call.b, call.x(), *AxesOfBatch(axis, call.ExampleShape()), 1e-12);
}

void RMSNormalization::Arguments(ArgumentVisitor& visitor) {
  visitor.Axes("axis", axis);
  visitor.Number("epsilon", epsilon, {.least = 0, .expected = "a number of at least 0"});
}

StatusOr<Shape> RMSNormalization::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(AxesOfBatch(axis, in).status());
  return in;
}

std::vector<VariableSpec> RMSNormalization::Variables(const Shape& in) const {
  const std::vector<int64_t> axes = *AxesOfBatch(axis, in);
  std::vector<int64_t> dims;
  for (int64_t d : axes) dims.push_back(in.dim(static_cast<int>(d) - 1));
  return {{.name = "scale", .shape = Shape(dims), .initializer = Initializer::Ones()}};
}

Output RMSNormalization::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  const Shape in = call.ExampleShape();
  const std::vector<int64_t> axes = *AxesOfBatch(axis, in);
  std::vector<int64_t> along(static_cast<size_t>(in.rank()) + 1, 1);
  for (int64_t d : axes) along[static_cast<size_t>(d)] = in.dim(static_cast<int>(d) - 1);
  const Output mean = Mean(b, Square(b, call.x()), axes, true);
  const Output factor = Rsqrt(b, graph::Add(b, mean, Scalar(b, b.dtype(mean), epsilon)));
  return Mul(b, Mul(b, call.x(), factor), graph::Reshape(b, call.variables[0], Shape(along)));
}

}  // namespace tfjob::model::layers
