#include "runtime/model/layers/fixed_normalization.h"

#include <algorithm>
#include <cmath>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/axes.h"

namespace tfjob::model::layers {

void Normalization::Arguments(ArgumentVisitor& visitor) {
  visitor.Axes("axis", axis);
  visitor.Numbers("mean", mean);
  visitor.Numbers("variance", variance);
  visitor.Flag("invert", invert);
}

StatusOr<Shape> Normalization::OutputShape(const Shape& in) const {
  if (mean.empty()) {
    return InvalidArgument(
        "expected a mean and a variance; those of a layer that was adapted are not supported, so "
        "give them to the layer as arguments");
  }
  if (axis.size() > 1) return InvalidArgument("expected one axis or none, got ", axis.size());
  if (!axis.empty()) RETURN_IF_ERROR(AxesOfBatch(axis, in).status());
  const int64_t size = axis.empty() ? 1 : in.dim(ExampleAxis(axis[0], in));
  const auto count = static_cast<int64_t>(mean.size());
  if (mean.size() != variance.size() || (count != 1 && count != size)) {
    return InvalidArgument("expected 1 or ", size, " elements of mean and variance, got ", count,
                           " and ", variance.size());
  }
  if (std::ranges::any_of(variance, [](double value) { return value < 0; }))
    return InvalidArgument("expected a variance of at least 0");
  return in;
}

graph::Output Normalization::Apply(const LayerCall& call) const {
  constexpr double kLeast = 1e-7;  // Keras' epsilon
  graph::Builder& b = call.b;
  const DType dtype = b.dtype(call.x());
  std::vector<int64_t> along(static_cast<size_t>(b.shape(call.x()).rank()), 1);
  if (mean.size() > 1)
    along[static_cast<size_t>(ExampleAxis(axis[0], call.ExampleShape()) + 1)] =
        static_cast<int64_t>(mean.size());
  Tensor means(DType::kFloat64, Shape(along)), roots(DType::kFloat64, Shape(along));
  for (size_t i = 0; i < mean.size(); ++i) {
    means.data<double>()[i] = mean[i];
    roots.data<double>()[i] = std::max(std::sqrt(variance[i]), kLeast);
  }
  const graph::Output m = Cast(b, Const(b, std::move(means)), dtype);
  const graph::Output root = Cast(b, Const(b, std::move(roots)), dtype);
  return invert ? graph::Add(b, m, Mul(b, call.x(), root)) : Div(b, Sub(b, call.x(), m), root);
}

}  // namespace tfjob::model::layers
