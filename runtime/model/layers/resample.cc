#include "runtime/model/layers/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

// Contains the weights for one element of the resized row. Positions are computed as float, as in
// TensorFlow, so that rounding selects the same neighbours.
using Row = std::span<float>;

float Position(int64_t element, float scale) {
  return (static_cast<float>(element) + 0.5f) * scale;
}

void Bilinear(int64_t element, float scale, Row weights) {
  const float at = Position(element, scale) - 0.5f;
  const auto last = static_cast<int64_t>(weights.size()) - 1;
  const float below = std::floor(at), fraction = at - below;
  const int64_t lower = std::max<int64_t>(static_cast<int64_t>(below), 0);
  const int64_t upper = std::min<int64_t>(static_cast<int64_t>(std::ceil(at)), last);
  weights[static_cast<size_t>(lower)] += 1 - fraction;
  weights[static_cast<size_t>(std::max<int64_t>(upper, 0))] += fraction;
}

void Nearest(int64_t element, float scale, Row weights) {
  const auto at = static_cast<size_t>(std::floor(Position(element, scale)));
  weights[std::min(at, weights.size() - 1)] = 1;
}

// Sets the weights of Keys' cubic kernel with A = -0.5. Rounds positions to 1/1024 of an element.
// Ignores neighbours beyond the ends of the row.
void Bicubic(int64_t element, float scale, Row weights) {
  constexpr float kSteps = 1024, kA = -0.5f;
  const float at = Position(element, scale) - 0.5f;
  const float below = std::floor(at);
  const float offset = static_cast<float>(std::lrint((at - below) * kSteps)) / kSteps;
  const auto near = [](float x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  const float four[] = {far(offset + 1), near(offset), near(1 - offset), far(2 - offset)};
  float sum = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t source = static_cast<int64_t>(below) - 1 + i;
    if (source < 0 || source >= static_cast<int64_t>(weights.size())) continue;
    weights[static_cast<size_t>(source)] = four[i];
    sum += four[i];
  }
  for (float& weight : weights) weight /= sum;
}

float Triangle(float x) {
  return std::max(1 - std::fabs(x), 0.0f);
}

float KeysCubic(float x) {
  x = std::fabs(x);
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : ((1.5f * x - 2.5f) * x) * x + 1;
}

float Lanczos(float x, float radius) {
  constexpr float kPi = std::numbers::pi_v<float>;
  x = std::fabs(x);
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}

float RadiusOf(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kLanczos5:
      return 5;
    case Interpolation::kLanczos3:
      return 3;
    case Interpolation::kBicubic:
      return 2;
    default:
      return 1;
  }
}

float Kernel(Interpolation interpolation, float x) {
  if (interpolation == Interpolation::kBilinear) return Triangle(x);
  if (interpolation == Interpolation::kBicubic) return KeysCubic(x);
  return Lanczos(x, RadiusOf(interpolation));
}

// Sets the weights of all elements within the radius of the kernel, which is multiplied by
// `stretch`.
void Smooth(int64_t element, float scale, float stretch, Interpolation interpolation, Row weights) {
  const float at = Position(element, scale), radius = RadiusOf(interpolation) * stretch;
  const auto last = static_cast<int64_t>(weights.size()) - 1;
  const auto bound = [last](float position) {
    return std::clamp<int64_t>(static_cast<int64_t>(position), 0, last);
  };
  float sum = 0;
  const int64_t end = bound(std::floor(at + radius - 0.5f));
  for (int64_t i = bound(std::ceil(at - radius - 0.5f)); i <= end; ++i) {
    float& weight = weights[static_cast<size_t>(i)];
    weight = Kernel(interpolation, (static_cast<float>(i) + 0.5f - at) / stretch);
    sum += weight;
  }
  for (float& weight : weights) weight /= sum;
}

void Weigh(int64_t element, float scale, Interpolation interpolation, bool antialias, Row weights) {
  const bool lanczos =
      interpolation == Interpolation::kLanczos3 || interpolation == Interpolation::kLanczos5;
  if (interpolation == Interpolation::kNearest) return Nearest(element, scale, weights);
  if (antialias || lanczos) {
    const float stretch = antialias ? std::max(scale, 1.0f) : 1.0f;
    return Smooth(element, scale, stretch, interpolation, weights);
  }
  if (interpolation == Interpolation::kBicubic) return Bicubic(element, scale, weights);
  Bilinear(element, scale, weights);
}

}  // namespace

Tensor ResampleWeights(int64_t from, int64_t to, Interpolation interpolation, bool antialias) {
  Tensor weights(DType::kFloat32, {to, from});
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (int64_t i = 0; i < to; ++i) {
    Weigh(i, scale, interpolation, antialias,
          weights.data<float>().subspan(static_cast<size_t>(i * from), static_cast<size_t>(from)));
  }
  return weights;
}

// Resizes first the height and then the width, in each case using a product with a matrix of
// weights. To resize the height, an image is treated as a matrix [height,width·channels].
Output Resample(Builder& b, Output images, int64_t height, int64_t width,
                Interpolation interpolation, bool antialias) {
  if (!b.ok()) return {};
  const Shape& shape = b.shape(images);
  const DType dtype = b.dtype(images);
  const int64_t count = shape.dim(0), from_height = shape.dim(1), from_width = shape.dim(2);
  const int64_t channels = shape.dim(3);
  const auto weights = [&](int64_t from, int64_t to) {
    const Tensor table = ResampleWeights(from, to, interpolation, antialias);
    return Cast(b, graph::Reshape(b, Const(b, table), {1, to, from}), dtype);
  };
  if (height != from_height) {
    const Output columns = graph::Reshape(b, images, {count, from_height, from_width * channels});
    images = BatchMatMul(b, weights(from_height, height), columns);
  }
  if (width != from_width) {
    const Output rows = graph::Reshape(b, images, {count * height, from_width, channels});
    images = BatchMatMul(b, weights(from_width, width), rows);
  }
  return graph::Reshape(b, images, {count, height, width, channels});
}

Window2D LargestWindow(int64_t height, int64_t width, int64_t target_height, int64_t target_width) {
  const auto fitted = [](int64_t other, int64_t target, int64_t other_target, int64_t most) {
    const float size = static_cast<float>(other * target) / static_cast<float>(other_target);
    return std::max<int64_t>(std::min(most, static_cast<int64_t>(size)), 1);
  };
  Window2D window{};
  window.height = fitted(width, target_height, target_width, height);
  window.width = fitted(height, target_width, target_height, width);
  window.top = (height - window.height) / 2;
  window.left = (width - window.width) / 2;
  return window;
}

}  // namespace tfjob::model::layers
