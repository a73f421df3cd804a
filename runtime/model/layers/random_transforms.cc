#include "runtime/model/layers/random_transforms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "runtime/graph/ops.h"
#include "runtime/model/layers/random_draws.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr std::array<std::string_view, 4> kFillModes = {"reflect", "wrap", "constant", "nearest"};
constexpr std::array<std::string_view, 2> kSamplings = {"bilinear", "nearest"};

// The op's names for these modes, in the same order.
constexpr std::array<std::string_view, 4> kOpFillModes = {"REFLECT", "WRAP", "CONSTANT", "NEAREST"};
constexpr std::array<std::string_view, 2> kOpSamplings = {"BILINEAR", "NEAREST"};

// Builds the transforms of a batch of images. Pixel (x, y) of the result is pixel (a0·x + a1·y +
// a2, b0·x + b1·y + b2) of the image. Each coefficient is [batch,1]. An invalid Output means the
// default: 1 for a0 and b1, and 0 for all others.
struct Coefficients {
  Output a0 = {}, a1 = {}, a2 = {}, b0 = {}, b1 = {}, b2 = {};
};

class TransformBuilder {
 public:
  explicit TransformBuilder(const LayerCall& call) : call_(call), b_(call.b) {}

  Output Number(double value) { return Scalar(b_, b_.dtype(call_.x()), value); }
  // Draws one number per image: [batch,1].
  Output Uniform(const Bounds& bounds) {
    return graph::Reshape(b_, UniformPerImage(call_, bounds), {call_.batch_size(), 1});
  }
  // Returns the offset that keeps the middle of an axis in place: middle - Σ factor·coefficient.
  Output Offset(double middle, Output x_factor, Output y_factor) {
    const Output moved = graph::Add(b_, graph::Mul(b_, x_factor, Number(CentreOf(2))),
                                    graph::Mul(b_, y_factor, Number(CentreOf(1))));
    return graph::Sub(b_, Number(middle), moved);
  }
  // Returns the coordinate of the image's centre along axis 1 (y) or 2 (x).
  double CentreOf(int axis) const {
    return static_cast<double>(b_.shape(call_.x()).dim(axis) - 1) / 2;
  }

  Output Apply(const Coefficients& c, const TransformOptions& options) {
    const Output transforms = Concat(b_,
                                     {Or(c.a0, 1), Or(c.a1, 0), Or(c.a2, 0), Or(c.b0, 0),
                                      Or(c.b1, 1), Or(c.b2, 0), Or({}, 0), Or({}, 0)},
                                     1);
    const Shape shape = b_.shape(call_.x());
    return ImageProjectiveTransform(
        b_, call_.x(), transforms,
        {.height = shape.dim(1),
         .width = shape.dim(2),
         .interpolation = kOpSamplings[static_cast<size_t>(options.interpolation)],
         .fill_mode = kOpFillModes[static_cast<size_t>(options.fill_mode)],
         .fill_value = options.fill_value});
  }

 private:
  Output Or(Output value, double otherwise) {
    const Shape shape = {call_.batch_size(), 1};
    return value.valid() ? value : graph::Fill(b_, b_.dtype(call_.x()), shape, otherwise);
  }

  const LayerCall& call_;
  Builder& b_;
};

// Like BoundsOf, but rejects -1, because it would zoom into a single pixel.
Status CheckZoom(std::string_view name, const std::vector<double>& factor) {
  RETURN_IF_ERROR(BoundsOf(name, factor, -1).status());
  if (std::ranges::find(factor, -1.0) == factor.end()) return OkStatus();
  return InvalidArgument(name, ": expected numbers above -1, got -1");
}

}  // namespace

void TransformOptions::Arguments(ArgumentVisitor& visitor) {
  visitor.Choice("fill_mode", fill_mode, kFillModes);
  visitor.Choice("interpolation", interpolation, kSamplings);
  visitor.Number("fill_value", fill_value, {});
}

void RandomTranslation::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("height_factor", height_factor);
  visitor.Numbers("width_factor", width_factor);
  options.Arguments(visitor);
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomTranslation::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(BoundsOf("height_factor", height_factor, -1).status());
  RETURN_IF_ERROR(BoundsOf("width_factor", width_factor, -1).status());
  return in;
}

Output RandomTranslation::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  TransformBuilder t(call);
  const Shape& shape = call.b.shape(call.x());
  const auto back = [&](const Bounds& bounds, int axis) {
    return graph::Mul(call.b, t.Uniform(bounds), t.Number(-static_cast<double>(shape.dim(axis))));
  };
  const Output down = back(*BoundsOf("height_factor", height_factor, -1), 1);
  const Output right = back(*BoundsOf("width_factor", width_factor, -1), 2);
  return t.Apply({.a2 = right, .b2 = down}, options);
}

void RandomRotation::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("factor", factor);
  options.Arguments(visitor);
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomRotation::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(BoundsOf("factor", factor, -1).status());
  return in;
}

Output RandomRotation::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  TransformBuilder t(call);
  Builder& b = call.b;
  const Output turns = t.Uniform(*BoundsOf("factor", factor, -1));
  const Output angle = graph::Mul(b, turns, t.Number(2 * std::numbers::pi));
  const Output cosine = Cos(b, angle), sine = Sin(b, angle), minus_sine = Neg(b, sine);
  return t.Apply({.a0 = cosine,
                  .a1 = minus_sine,
                  .a2 = t.Offset(t.CentreOf(2), cosine, minus_sine),
                  .b0 = sine,
                  .b1 = cosine,
                  .b2 = t.Offset(t.CentreOf(1), sine, cosine)},
                 options);
}

void RandomZoom::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("height_factor", height_factor);
  visitor.Numbers("width_factor", width_factor);
  options.Arguments(visitor);
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomZoom::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(CheckZoom("height_factor", height_factor));
  if (!width_factor.empty()) RETURN_IF_ERROR(CheckZoom("width_factor", width_factor));
  return in;
}

Output RandomZoom::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  TransformBuilder t(call);
  Builder& b = call.b;
  const auto zoom = [&](const Bounds& bounds) {
    return graph::Add(b, t.Uniform(bounds), t.Number(1));
  };
  const Output height = zoom(*BoundsOf("height_factor", height_factor, -1));
  const Output width =
      width_factor.empty() ? height : zoom(*BoundsOf("width_factor", width_factor, -1));
  const Output none = t.Number(0);
  return t.Apply({.a0 = width,
                  .a2 = t.Offset(t.CentreOf(2), width, none),
                  .b1 = height,
                  .b2 = t.Offset(t.CentreOf(1), none, height)},
                 options);
}

void RandomShear::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("x_factor", x_factor);
  visitor.Numbers("y_factor", y_factor);
  // Treat [-x, x] as the single number x: Keras writes x in the form [-x, x], although it does not
  // accept this form as an argument.
  for (std::vector<double>* factor : {&x_factor, &y_factor}) {
    if (factor->size() == 2 && (*factor)[0] == -(*factor)[1]) *factor = {std::fabs((*factor)[1])};
  }
  options.Arguments(visitor);
  RandomArguments(visitor, seed);
}

StatusOr<Shape> RandomShear::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectImages(in));
  RETURN_IF_ERROR(BoundsOf("x_factor", x_factor, 0).status());
  RETURN_IF_ERROR(BoundsOf("y_factor", y_factor, 0).status());
  return in;
}

Output RandomShear::Apply(const LayerCall& call) const {
  if (!call.training) return call.x();
  TransformBuilder t(call);
  Builder& b = call.b;
  const Output below = Less(b, t.Uniform({0, 1}), t.Number(0.5));
  // If the factor is a single number x, Keras draws from [-x, x].
  const auto shear = [&](const std::vector<double>& factor) {
    const Bounds bounds =
        factor.size() == 1 ? Bounds{-factor[0], factor[0]} : *BoundsOf("", factor, 0);
    const Output drawn = t.Uniform(bounds);
    return Select(b, below, drawn, Neg(b, drawn));
  };
  const Output x = shear(x_factor);
  return t.Apply({.a1 = x, .b0 = shear(y_factor)}, options);
}

}  // namespace tfjob::model::layers
