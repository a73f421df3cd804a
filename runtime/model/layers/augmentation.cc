#include "runtime/model/layers/augmentation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/flip.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr std::array<std::string_view, 3> kModes = {"horizontal", "vertical",
                                                    "horizontal_and_vertical"};

void CommonArguments(ArgumentVisitor& visitor, std::optional<int64_t>& seed) {
  visitor.Optional("seed", seed);
  visitor.Only("data_format", "\"channels_last\"");
}

Status ExpectImages(const Shape& in) {
  if (in.rank() == 3) return OkStatus();
  return InvalidArgument("expected examples of shape [height,width,channels], got ", in.ToString());
}

// Returns the bounds that a factor stands for, as in Keras' BaseImagePreprocessingLayer: a single
// number x stands for the bounds max(-|x|, least) and |x|.
StatusOr<std::array<double, 2>> Bounds(const std::vector<double>& factor, double least) {
  const auto fits = [least](double bound) { return bound >= least && bound <= 1; };
  if (factor.empty() || factor.size() > 2 || !std::ranges::all_of(factor, fits)) {
    return InvalidArgument("factor: expected a number, or two, from ", least, " to 1");
  }
  if (factor.size() == 2)
    return std::array{std::min(factor[0], factor[1]), std::max(factor[0], factor[1])};
  return std::array{std::max(-std::fabs(factor[0]), least), std::fabs(factor[0])};
}

StatusOr<std::array<double, 2>> ValueRange(const std::vector<double>& range) {
  if (range.size() == 2)
    return std::array{std::min(range[0], range[1]), std::max(range[0], range[1])};
  return InvalidArgument("value_range: expected two numbers, got ", range.size());
}

// Returns one number per image, evenly distributed between the bounds. Computes them from normally
// distributed numbers with the distribution function, because only RandomNormal takes the replica
// into account.
Output UniformPerImage(const LayerCall& call, double low, double high) {
  Builder& b = call.b;
  const Shape shape = {call.batch_size(), 1, 1, 1};
  const Output normal =
      RandomNormal(b, call.step, call.seed, DType::kFloat32, shape, 0, 1, call.replica);
  const auto number = [&](double value) { return Scalar(b, DType::kFloat32, value); };
  const Output twice =
      graph::Add(b, Erf(b, Mul(b, normal, number(1 / std::numbers::sqrt2))), number(1));
  const Output uniform = graph::Add(b, Mul(b, twice, number((high - low) / 2)), number(low));
  return Cast(b, uniform, b.dtype(call.x()));
}

}  // namespace

void RandomFlip::Arguments(ArgumentVisitor& visitor) {
  visitor.Choice("mode", mode, kModes);
  CommonArguments(visitor, seed);
}

StatusOr<Shape> RandomFlip::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  return in;
}

Output RandomFlip::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  Builder& b = call.b;
  Output flipped = call.x();
  if (mode != Mode::kVertical) flipped = Flipped(b, flipped, 2);
  if (mode != Mode::kHorizontal && b.ok()) flipped = Flipped(b, flipped, 1);
  const Output chance = UniformPerImage(call, 0, 1);
  if (!b.ok()) return {};
  const Output flips = Less(b, chance, Scalar(b, b.dtype(chance), 0.5));
  return Select(b, flips, flipped, call.x());
}

void RandomBrightness::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("factor", factor);
  visitor.Numbers("value_range", value_range);
  CommonArguments(visitor, seed);
}

StatusOr<Shape> RandomBrightness::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(Bounds(factor, -1).status());
  RETURN_IF_ERROR(ValueRange(value_range).status());
  return in;
}

Output RandomBrightness::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  const auto bounds = *Bounds(factor, -1), range = *ValueRange(value_range);
  const double width = range[1] - range[0];
  const Output change = UniformPerImage(call, bounds[0] * width, bounds[1] * width);
  return ClipByValue(call.b, graph::Add(call.b, call.x(), change), range[0], range[1]);
}

void RandomContrast::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("factor", factor);
  visitor.Numbers("value_range", value_range);
  CommonArguments(visitor, seed);
}

StatusOr<Shape> RandomContrast::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(Bounds(factor, 0).status());
  RETURN_IF_ERROR(ValueRange(value_range).status());
  return in;
}

Output RandomContrast::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  Builder& b = call.b;
  const auto bounds = *Bounds(factor, 0), range = *ValueRange(value_range);
  const Output mean = Mean(b, call.x(), {1, 2}, /*keep_dims=*/true);
  const Output stretch = UniformPerImage(call, 1 - bounds[0], 1 + bounds[1]);
  const Output changed = graph::Add(b, Mul(b, Sub(b, call.x(), mean), stretch), mean);
  return ClipByValue(b, changed, range[0], range[1]);
}

}  // namespace tfjob::model::layers
