#include "runtime/model/layers/fixed_normalization.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/axes.h"

namespace tfjob::model::layers {
namespace {

using graph::Output;

// Returns the kept axes in ascending order, where the batch is axis 0.
std::vector<int64_t> KeptAxes(const std::vector<int64_t>& axis, const Shape& in) {
  return axis.empty() ? std::vector<int64_t>() : *AxesOfBatch(axis, in);
}

// Returns a shape with the rank of a batch, and size 1 for all axes but `kept`.
Shape Along(std::span<const int64_t> kept, const Shape& in) {
  std::vector<int64_t> dims(static_cast<size_t>(in.rank()) + 1, 1);
  for (const int64_t d : kept) dims[static_cast<size_t>(d)] = in.dim(static_cast<int>(d) - 1);
  return Shape(std::move(dims));
}

Output Constant(graph::Builder& b, std::span<const double> values, Shape shape) {
  Tensor tensor(DType::kFloat64, std::move(shape));
  std::ranges::copy(values, tensor.data<double>().begin());
  return Const(b, std::move(tensor));
}

}  // namespace

void Normalization::Arguments(ArgumentVisitor& visitor) {
  visitor.Axes("axis", axis);
  visitor.Numbers("mean", mean);
  visitor.Numbers("variance", variance);
  visitor.Flag("invert", invert);
}

StatusOr<Shape> Normalization::OutputShape(const Shape& in) const {
  if (!axis.empty()) RETURN_IF_ERROR(AxesOfBatch(axis, in).status());
  if (mean.size() != variance.size()) {
    return InvalidArgument("expected as many elements of mean as of variance, got ", mean.size(),
                           " and ", variance.size());
  }
  const std::vector<int64_t> kept = KeptAxes(axis, in);
  const int64_t size = kept.empty() ? 1 : in.dim(static_cast<int>(kept.back()) - 1);
  const auto count = static_cast<int64_t>(mean.size());
  if (count > 1 && count != size)
    return InvalidArgument("expected 1 or ", size, " elements of mean and variance, got ", count);
  if (std::ranges::any_of(variance, [](double value) { return value < 0; }))
    return InvalidArgument("expected a variance of at least 0");
  return in;
}

std::vector<VariableSpec> Normalization::Variables(const Shape& in) const {
  if (!mean.empty()) return {};
  std::vector<int64_t> dims;
  for (const int64_t d : KeptAxes(axis, in)) dims.push_back(in.dim(static_cast<int>(d) - 1));
  const Shape shape(std::move(dims));
  return {{"mean", DType::kFloat32, shape, Initializer::Zeros(), false},
          {"variance", DType::kFloat32, shape, Initializer::Ones(), false},
          {"count", DType::kInt64, {}, Initializer::Zeros(), false}};
}

Output Normalization::Apply(const LayerCall& call) const {
  constexpr double kLeast = 1e-7;  // Keras' epsilon
  graph::Builder& b = call.b;
  const DType dtype = b.dtype(call.x());
  const Shape in = call.ExampleShape();
  std::vector<int64_t> kept = KeptAxes(axis, in);
  Output m, square;
  if (mean.empty()) {
    m = graph::Reshape(b, call.variables[0], Along(kept, in));
    square = graph::Reshape(b, call.variables[1], Along(kept, in));
  } else {
    // Given moments belong to the last of the axes.
    if (!kept.empty()) kept.erase(kept.begin(), kept.end() - (mean.size() == 1 ? 0 : 1));
    m = Constant(b, mean, Along(kept, in));
    square = Constant(b, variance, Along(kept, in));
  }
  const Output root =
      Cast(b, graph::Maximum(b, graph::Sqrt(b, square), Scalar(b, b.dtype(square), kLeast)), dtype);
  m = Cast(b, m, dtype);
  return invert ? graph::Add(b, m, Mul(b, call.x(), root)) : Div(b, Sub(b, call.x(), m), root);
}

}  // namespace tfjob::model::layers
