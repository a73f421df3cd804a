#include "runtime/model/layers/noise.h"

#include <cmath>
#include <utility>

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

constexpr NumberRule kRate = {
    .least = 0, .most = 1, .below_most = true, .expected = "a number in [0, 1)", .required = true};

graph::Output Noise(const LayerCall& call, double mean, double stddev) {
  const TensorType& type = call.b.type(call.x());
  return graph::RandomNormal(call.b, call.step, call.seed, type.dtype, type.shape, mean, stddev,
                             call.replica);
}

// Returns a tensor of this shape that is 1 / (1 - rate) for elements to keep, and 0 for elements to
// drop.
graph::Output Kept(const LayerCall& call, const Shape& shape, double rate) {
  const graph::Output ones = graph::Fill(call.b, call.b.dtype(call.x()), shape, 1);
  return graph::Dropout(call.b, ones, call.step, call.seed, rate, call.replica);
}

// Returns `in`, or InvalidArgument if the noise_shape does not fit examples of this shape.
StatusOr<Shape> FittingNoise(const std::vector<int64_t>& noise_shape, const Shape& in) {
  bool fits = noise_shape.empty() || noise_shape.size() == in.dims().size() + 1;
  for (size_t i = 1; fits && i < noise_shape.size(); ++i) {
    const int64_t size = noise_shape[i];
    fits = size < 0 || size == 1 || size == in.dims()[i - 1];
  }
  if (fits) return in;
  return InvalidArgument(
      "noise_shape: expected null, 1 or the size of the input for the batch and ",
      "for each axis of ", in.ToString());
}

// Returns the shape of the noise for a call. FittingNoise must have accepted the examples. Reports
// an error to the builder if noise_shape states another batch size.
Shape NoiseShape(const LayerCall& call, const std::vector<int64_t>& noise_shape) {
  std::vector<int64_t> dims = call.b.shape(call.x()).dims();
  if (!noise_shape.empty() && noise_shape[0] > 1 && noise_shape[0] != dims[0]) {
    call.b.Fail(InvalidArgument("noise_shape: expected null, 1 or the batch size, ", dims[0],
                                ", as its first size, got ", noise_shape[0]));
  }
  for (size_t i = 0; i < noise_shape.size(); ++i) {
    if (noise_shape[i] == 1) dims[i] = 1;
  }
  return Shape(std::move(dims));
}

}  // namespace

void Dropout::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("rate", rate, kRate);
  visitor.Sizes("noise_shape", noise_shape);
  visitor.Optional("seed", seed);
}
StatusOr<Shape> Dropout::OutputShape(const Shape& in) const {
  return FittingNoise(noise_shape, in);
}
graph::Output Dropout::Apply(const LayerCall& call) const {
  if (!call.training || rate == 0) return call.x();
  if (!noise_shape.empty())
    return graph::Mul(call.b, call.x(), Kept(call, NoiseShape(call, noise_shape), rate));
  return graph::Dropout(call.b, call.x(), call.step, call.seed, rate, call.replica);
}

void GaussianNoise::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("stddev", stddev,
                 {.least = 0, .expected = "a number of at least 0", .required = true});
  visitor.Optional("seed", seed);
}
graph::Output GaussianNoise::Apply(const LayerCall& call) const {
  if (!call.training || stddev == 0) return call.x();
  return graph::Add(call.b, call.x(), Noise(call, 0, stddev));
}

void GaussianDropout::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("rate", rate, kRate);
  visitor.Optional("seed", seed);
}
graph::Output GaussianDropout::Apply(const LayerCall& call) const {
  if (!call.training || rate == 0) return call.x();
  return graph::Mul(call.b, call.x(), Noise(call, 1, std::sqrt(rate / (1 - rate))));
}

template <int kRank>
void SpatialDropout<kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("rate", rate, kRate);
  visitor.Optional("seed", seed);
  visitor.Retired("noise_shape", "null");
  visitor.Retired("data_format", "\"channels_last\"");
}
template <int kRank>
StatusOr<Shape> SpatialDropout<kRank>::OutputShape(const Shape& in) const {
  if (in.rank() == kRank + 1) return in;
  return InvalidArgument("expected examples of rank ", kRank + 1, ", got shape ", in.ToString());
}
template <int kRank>
graph::Output SpatialDropout<kRank>::Apply(const LayerCall& call) const {
  if (!call.training || rate == 0) return call.x();
  std::vector<int64_t> dims = call.b.shape(call.x()).dims();
  for (int axis = 1; axis <= kRank; ++axis) dims[static_cast<size_t>(axis)] = 1;
  return graph::Mul(call.b, call.x(), Kept(call, Shape(std::move(dims)), rate));
}
template struct SpatialDropout<1>;
template struct SpatialDropout<2>;
template struct SpatialDropout<3>;

void AlphaDropout::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("rate", rate, kRate);
  visitor.Sizes("noise_shape", noise_shape);
  visitor.Optional("seed", seed);
}
StatusOr<Shape> AlphaDropout::OutputShape(const Shape& in) const {
  return FittingNoise(noise_shape, in);
}
graph::Output AlphaDropout::Apply(const LayerCall& call) const {
  if (!call.training || rate == 0) return call.x();
  graph::Builder& b = call.b;
  const auto number = [&](double value) { return Scalar(b, b.dtype(call.x()), value); };
  constexpr double kLeast = -1.6732632423543772 * 1.0507009873554805;
  const double factor = 1 / std::sqrt((1 - rate) * (1 + rate * kLeast * kLeast));
  const graph::Output kept =
      graph::Mul(b, Kept(call, NoiseShape(call, noise_shape), rate), number(1 - rate));
  const graph::Output dropped = graph::Mul(b, graph::Sub(b, number(1), kept), number(kLeast));
  const graph::Output y = graph::Add(b, graph::Mul(b, call.x(), kept), dropped);
  return graph::Add(b, graph::Mul(b, y, number(factor)), number(-factor * kLeast * rate));
}

}  // namespace tfjob::model::layers
