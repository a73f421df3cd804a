#include "runtime/model/layers/image_size.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/graph/ops.h"
#include "runtime/model/layers/random_draws.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr int64_t kLongestSide = 1 << 14;

void SizeArguments(ArgumentVisitor& visitor, int64_t& height, int64_t& width) {
  const IntegerRule rule{
      .least = 1, .most = kLongestSide, .expected = "an integer from 1 to 16384", .required = true};
  visitor.Integer("height", height, rule);
  visitor.Integer("width", width, rule);
  visitor.Only("data_format", "\"channels_last\"");
}

StatusOr<Shape> Resized(const Shape& in, int64_t height, int64_t width) {
  if (in.rank() != 3) {
    return InvalidArgument("expected examples of shape [height,width,channels], got ",
                           in.ToString());
  }
  if (in.dim(0) < 1 || in.dim(1) < 1)
    return InvalidArgument("expected images that are not empty, got ", in.ToString());
  if (std::max(in.dim(0), in.dim(1)) > kMostResampleWeights / std::max(height, width)) {
    return InvalidArgument("expected smaller images, got ", in.ToString(), " to be resized to ",
                           height, "×", width);
  }
  return Shape{height, width, in.dim(2)};
}

Output Part(Builder& b, Output images, const Window2D& window) {
  const Shape& shape = b.shape(images);
  return graph::Slice(b, images, {0, window.top, window.left, 0},
                      {shape.dim(0), window.height, window.width, shape.dim(3)});
}

// Returns how many rows to add above and below the image, and how many columns to its left and
// right, to get the aspect ratio of the target.
std::pair<int64_t, int64_t> Margins(const Shape& in, int64_t height, int64_t width) {
  const auto margin = [](int64_t other, int64_t target, int64_t other_target, int64_t size) {
    const float wanted = static_cast<float>(other * target) / static_cast<float>(other_target);
    return (std::max(size, static_cast<int64_t>(wanted)) - size) / 2;
  };
  return {margin(in.dim(1), height, width, in.dim(0)), margin(in.dim(0), width, height, in.dim(1))};
}

// Crops each image to the largest part with the aspect ratio height:width, and resizes this part.
Output Fitted(const LayerCall& call, int64_t height, int64_t width) {
  const Shape in = call.ExampleShape();
  const Output part = Part(call.b, call.x(), LargestWindow(in.dim(0), in.dim(1), height, width));
  return Resample(call.b, part, height, width, Interpolation::kBilinear, /*antialias=*/false);
}

// Draws one integer from 0 to `most` per image: [batch,1].
Output IntegerPerImage(const LayerCall& call, int64_t most) {
  Builder& b = call.b;
  const Output drawn = UniformPerImage(call, {0, static_cast<double>(most + 1)});
  // Clip the number, because the distribution occasionally returns its upper bound.
  const Output number =
      Cast(b, ClipByValue(b, drawn, 0, static_cast<double>(most) + 0.5), DType::kInt64);
  return graph::Reshape(b, Cast(b, number, b.dtype(call.x())), {call.batch_size(), 1});
}

Output Filled(Builder& b, Output images, std::pair<int64_t, int64_t> margins, double value) {
  const std::vector<int64_t> sides = {0, margins.first, margins.second, 0};
  if (value == 0) return Pad(b, images, sides, sides);
  const Output filling = Scalar(b, b.dtype(images), value);
  return graph::Add(b, Pad(b, Sub(b, images, filling), sides, sides), filling);
}

}  // namespace

void Resizing::Arguments(ArgumentVisitor& visitor) {
  SizeArguments(visitor, height, width);
  visitor.Choice("interpolation", interpolation, kInterpolations);
  visitor.Flag("crop_to_aspect_ratio", crop_to_aspect_ratio);
  visitor.Flag("pad_to_aspect_ratio", pad_to_aspect_ratio);
  visitor.Only("fill_mode", "\"constant\"");
  visitor.Number("fill_value", fill_value, {});
  visitor.Flag("antialias", antialias);
}

StatusOr<Shape> Resizing::OutputShape(const Shape& in) const {
  if (crop_to_aspect_ratio && pad_to_aspect_ratio) {
    return InvalidArgument(
        "expected only one of crop_to_aspect_ratio and pad_to_aspect_ratio to be true");
  }
  ASSIGN_OR_RETURN(Shape out, Resized(in, height, width));
  if (!pad_to_aspect_ratio) return out;
  const auto [rows, columns] = Margins(in, height, width);
  return Resized({in.dim(0) + 2 * rows, in.dim(1) + 2 * columns, in.dim(2)}, height, width);
}

Output Resizing::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  Output images = call.x();
  const Shape in = call.ExampleShape();
  if (crop_to_aspect_ratio)
    images = Part(b, images, LargestWindow(in.dim(0), in.dim(1), height, width));
  if (pad_to_aspect_ratio) images = Filled(b, images, Margins(in, height, width), fill_value);
  return Resample(b, images, height, width, interpolation, antialias);
}

void CenterCrop::Arguments(ArgumentVisitor& visitor) {
  SizeArguments(visitor, height, width);
}

StatusOr<Shape> CenterCrop::OutputShape(const Shape& in) const {
  return Resized(in, height, width);
}

Output CenterCrop::Apply(const LayerCall& call) const {
  const Shape in = call.ExampleShape();
  if (in.dim(0) >= height && in.dim(1) >= width) {
    return Part(call.b, call.x(),
                {(in.dim(0) - height) / 2, (in.dim(1) - width) / 2, height, width});
  }
  return Fitted(call, height, width);
}

void RandomCrop::Arguments(ArgumentVisitor& visitor) {
  SizeArguments(visitor, height, width);
  visitor.Optional("seed", seed);
}

StatusOr<Shape> RandomCrop::OutputShape(const Shape& in) const {
  return Resized(in, height, width);
}

Output RandomCrop::Apply(const LayerCall& call) const {
  const Shape in = call.ExampleShape();
  if (!call.training || in.dim(0) < height || in.dim(1) < width) return Fitted(call, height, width);
  Builder& b = call.b;
  const Output top = IntegerPerImage(call, in.dim(0) - height);
  const Output left = IntegerPerImage(call, in.dim(1) - width);
  const DType dtype = b.dtype(call.x());
  const Shape column = {call.batch_size(), 1};
  const Output one = Fill(b, dtype, column, 1), none = Fill(b, dtype, column, 0);
  const Output transforms = Concat(b, {one, none, left, none, one, top, none, none}, 1);
  return ImageProjectiveTransform(b, call.x(), transforms,
                                  {.height = height, .width = width, .interpolation = "NEAREST"});
}

}  // namespace tfjob::model::layers
