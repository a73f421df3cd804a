#include "runtime/model/layers/augmentation.h"

#include <algorithm>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/flip.h"
#include "runtime/model/layers/random_draws.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr std::array<std::string_view, 3> kModes = {"horizontal", "vertical",
                                                    "horizontal_and_vertical"};

StatusOr<Bounds> ValueRange(const std::vector<double>& range) {
  if (range.size() == 2)
    return std::array{std::min(range[0], range[1]), std::max(range[0], range[1])};
  return InvalidArgument("value_range: expected two numbers, got ", range.size());
}

// Returns one bool per image. It is true with a probability that is drawn at random between the
// bounds.
Output Happens(const LayerCall& call, const Bounds& bounds) {
  const Output probability = UniformPerImage(call, bounds);
  return Less(call.b, UniformPerImage(call, {0, 1}), probability);
}

}  // namespace

void RandomFlip::Arguments(ArgumentVisitor& visitor) {
  visitor.Choice("mode", mode, kModes);
  RandomArguments(visitor, seed);
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
  const Output chance = UniformPerImage(call, {0, 1});
  if (!b.ok()) return {};
  const Output flips = Less(b, chance, Scalar(b, b.dtype(chance), 0.5));
  return Select(b, flips, flipped, call.x());
}

void RandomBrightness::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("factor", factor);
  visitor.Numbers("value_range", value_range);
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomBrightness::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(BoundsOf("factor", factor, -1).status());
  RETURN_IF_ERROR(ValueRange(value_range).status());
  return in;
}

Output RandomBrightness::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  const auto bounds = *BoundsOf("factor", factor, -1), range = *ValueRange(value_range);
  const double width = range[1] - range[0];
  const Output change = UniformPerImage(call, {bounds[0] * width, bounds[1] * width});
  return ClipByValue(call.b, graph::Add(call.b, call.x(), change), range[0], range[1]);
}

void RandomContrast::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("factor", factor);
  visitor.Numbers("value_range", value_range);
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomContrast::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(BoundsOf("factor", factor, 0).status());
  RETURN_IF_ERROR(ValueRange(value_range).status());
  return in;
}

Output RandomContrast::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  Builder& b = call.b;
  const auto bounds = *BoundsOf("factor", factor, 0), range = *ValueRange(value_range);
  const Output mean = Mean(b, call.x(), {1, 2}, /*keep_dims=*/true);
  const Output stretch = UniformPerImage(call, {1 - bounds[0], 1 + bounds[1]});
  const Output changed = graph::Add(b, Mul(b, Sub(b, call.x(), mean), stretch), mean);
  return ClipByValue(b, changed, range[0], range[1]);
}

void RandomInvert::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("factor", factor);
  visitor.Numbers("value_range", value_range);
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomInvert::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(BoundsOf("factor", factor, 0).status());
  RETURN_IF_ERROR(ValueRange(value_range).status());
  return in;
}

Output RandomInvert::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  Builder& b = call.b;
  // Like Keras, subtract from value_range[1], even if it is less than value_range[0].
  const Output inverted = Sub(b, Scalar(b, b.dtype(call.x()), value_range[1]), call.x());
  return Select(b, Happens(call, *BoundsOf("factor", factor, 0)), inverted, call.x());
}

void RandomGrayscale::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("factor", factor,
                 {.least = 0, .most = 1, .expected = "a probability from 0 to 1"});
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomGrayscale::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  if (in.dim(2) == 1 || in.dim(2) == 3) return in;
  return InvalidArgument("expected images with 1 or 3 channels, got ", in.ToString());
}

Output RandomGrayscale::Apply(const LayerCall& call) const {
  const Shape in = call.ExampleShape();
  if (!call.training || in.dim(2) == 1) return call.x();
  Builder& b = call.b;
  // Use the luma weights of ITU-R BT.601, rounded as in tf.image.rgb_to_grayscale.
  const Output weights = Const(b, Tensor::Of<float>({3}, {0.2989F, 0.587F, 0.114F}));
  const Output luma =
      Sum(b, Mul(b, call.x(), Cast(b, weights, b.dtype(call.x()))), {3}, /*keep_dims=*/true);
  const Output grey = BroadcastTo(b, luma, Batched(call.batch_size(), in));
  return Select(b, Happens(call, {factor, factor}), grey, call.x());
}

}  // namespace tfjob::model::layers
