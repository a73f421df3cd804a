#include "runtime/kernels/cuda/checks/vision_cases.h"

#include <string>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {
namespace {

// The tolerance of sums, which the library and the CPU add in different orders.
constexpr double kVisionTolerance = 2e-5;

WindowAxis DrawAxis(PhiloxStream& random, int64_t inputs) {
  WindowAxis axis{.size = Draw(random, {1, 2, 3, 5}),
                  .stride = Draw(random, {1, 1, 2, 3, 7}),
                  .dilation = Draw(random, {1, 1, 1, 2, 3})};
  axis.before = random.Below(static_cast<uint32_t>(axis.size));
  axis.after = random.Below(static_cast<uint32_t>(axis.size));
  while (inputs + axis.before + axis.after < axis.extent()) {
    if (axis.dilation > 1) {
      axis.dilation = 1;
    } else {
      axis = {.stride = axis.stride};
    }
  }
  return axis;
}

WindowAxis DrawPool(PhiloxStream& random, int64_t inputs) {
  WindowAxis axis{.size = Draw(random, {1, 2, 3, 4}), .stride = Draw(random, {1, 2, 2, 3, 6})};
  axis.before = random.Below(static_cast<uint32_t>(axis.size));
  axis.after = random.Below(static_cast<uint32_t>(axis.size));
  if (inputs + axis.before + axis.after < axis.size) axis = {.stride = axis.stride};
  return axis;
}

// Returns attributes with a large epsilon: some variances are 0, and a small epsilon would then
// multiply rounding errors by a large factor.
Attributes NormAttributes(bool relu) {
  Attributes attributes = {{"epsilon", 0.25}};
  if (relu) attributes.Set("activation", std::string("Relu"));
  return attributes;
}

}  // namespace

Shape ConvolutionCase::filter() const {
  return {window.height.size, window.width.size, image.dim(3) / groups, outputs};
}
Shape ConvolutionCase::output() const {
  return {image.dim(0), window.height.Count(image.dim(1)), window.width.Count(image.dim(2)),
          outputs};
}
Attributes ConvolutionCase::attributes() const {
  Attributes attributes;
  SetWindow(attributes, window);
  return attributes;
}

ConvolutionCase DrawConvolution(PhiloxStream& random, int64_t groups, int64_t depth,
                                int64_t outputs) {
  ConvolutionCase c{.image = {Draw(random, {1, 2, 3}), Draw(random, {1, 4, 5, 8}),
                              Draw(random, {1, 3, 6, 7}), groups * depth},
                    .outputs = groups * outputs,
                    .groups = groups};
  c.window = {DrawAxis(random, c.image.dim(1)), DrawAxis(random, c.image.dim(2))};
  return c;
}

std::vector<Comparison> ConvolutionsOf(const ConvolutionCase& c) {
  const Attributes attributes = c.attributes();
  const RandomOperand image{c.image}, filter{c.filter()}, output{c.output()};
  std::vector<Comparison> all = {
      {"Conv2D", attributes, {image, filter}, {output}, kVisionTolerance},
      {"Conv2DBackpropInput", attributes, {filter, output}, {image}, kVisionTolerance},
      {"Conv2DBackpropFilter", attributes, {image, output}, {filter}, kVisionTolerance}};
  for (const char* activation : {"", "Relu"}) {
    for (const bool bias : {false, true}) {
      Comparison fused{"FusedConv2D", attributes, {image, filter}, {output}, kVisionTolerance};
      fused.attributes.Set("activation", std::string(activation));
      fused.attributes.Set("bias", bias);
      if (bias) fused.inputs.push_back({Shape({c.outputs})});
      all.push_back(fused);
    }
  }
  // The sums over large matrices have larger errors.
  for (Comparison& comparison : all) comparison.floor = 8;
  return all;
}

std::vector<Comparison> ConvolutionCases(uint64_t seed) {
  PhiloxStream random(seed);
  const int64_t groups = Draw(random, {1, 1, 2, 3}), depth = Draw(random, {2, 3, 4, 8});
  return ConvolutionsOf(DrawConvolution(random, groups, depth, Draw(random, {1, 3, 4})));
}

// There is one channel per group, and one or more outputs.
std::vector<Comparison> DepthwiseCases(uint64_t seed) {
  PhiloxStream random(seed);
  const int64_t channels = Draw(random, {2, 5, 33});
  return ConvolutionsOf(DrawConvolution(random, channels, 1, Draw(random, {1, 1, 2, 3})));
}

std::vector<Comparison> PoolingCases(uint64_t seed) {
  PhiloxStream random(seed);
  const Shape image = {Draw(random, {1, 2, 3}), Draw(random, {1, 4, 5, 9}),
                       Draw(random, {1, 3, 6, 7}), Draw(random, {1, 3, 4, 33})};
  const Window window = {DrawPool(random, image.dim(1)), DrawPool(random, image.dim(2))};
  const Shape pooled = {image.dim(0), window.height.Count(image.dim(1)),
                        window.width.Count(image.dim(2)), image.dim(3)};
  Attributes attributes;
  SetWindow(attributes, window);
  // If the values are special, some windows contain NaN, or only infinities.
  const RandomOperand values{.shape = image, .special = seed % 2 == 1, .whole = true};
  const RandomOperand maxima{.shape = pooled, .special = seed % 2 == 1, .whole = true};
  // MaxPoolGrad gets random maxima: it only compares the values with them.
  return {{"MaxPool", attributes, {values}, {{pooled}}, 0},
          {"AvgPool", attributes, {{image}}, {{pooled}}},
          {"AvgPoolGrad", attributes, {{pooled}}, {{image}}},
          {"MaxPoolGrad", attributes, {values, maxima, {pooled}}, {{image}}}};
}

std::vector<Comparison> NormsOf(const Shape& shape, double low, double high) {
  const RandomOperand x{.shape = shape, .low = low, .high = high};
  const RandomOperand channel{.shape = {shape.dim(-1)}};
  std::vector<Comparison> all;
  for (const bool relu : {false, true}) {
    for (const bool side : {false, true}) {
      if (side && !relu) continue;
      Comparison norm{.op = relu ? "FusedBatchNormEx" : "FusedBatchNorm",
                      .attributes = NormAttributes(relu),
                      .inputs = {x, channel, channel},
                      .outputs = {{shape}, channel, channel},
                      .tolerance = kVisionTolerance};
      if (side) norm.inputs.push_back({shape});
      all.push_back(norm);
    }
  }
  return all;
}

std::vector<Comparison> NormGradientsOf(const Shape& shape) {
  const RandomOperand channel{.shape = {shape.dim(-1)}};
  const RandomOperand variance{.shape = {shape.dim(-1)}, .low = 0.5};
  std::vector<Comparison> all;
  for (int more = -1; more <= 2; ++more) {  // -1: without an activation
    Comparison gradient{.op = more < 0 ? "FusedBatchNormGrad" : "FusedBatchNormGradEx",
                        .attributes = NormAttributes(more >= 0),
                        .inputs = {{shape}, {shape}, channel, channel, channel, variance},
                        .outputs = {{shape}, channel, channel},
                        .tolerance = kVisionTolerance,
                        .floor = 4};
    for (int i = 0; i < more; ++i) gradient.inputs.push_back({shape});
    if (more > 0) gradient.outputs.push_back({shape});
    all.push_back(gradient);
  }
  return all;
}

std::vector<Comparison> BatchNormCases(uint64_t seed) {
  PhiloxStream random(seed);
  const Shape shape = {Draw(random, {1, 2, 3}), Draw(random, {1, 5, 16}), Draw(random, {1, 3, 11}),
                       Draw(random, {1, 3, 32, 37})};
  std::vector<Comparison> all = NormsOf(shape, -3, 3);
  for (Comparison& gradient : NormGradientsOf(shape)) all.push_back(std::move(gradient));
  return all;
}

std::vector<Comparison> ImageTransformCases(uint64_t seed) {
  constexpr const char* kModes[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
  PhiloxStream random(seed);
  const Shape images = {Draw(random, {1, 2, 3}), Draw(random, {1, 4, 9}), Draw(random, {1, 3, 7}),
                        Draw(random, {1, 3, 33})};
  const Shape out = {images.dim(0), Draw(random, {1, 5, 8}), Draw(random, {1, 2, 9}),
                     images.dim(3)};
  const Attributes attributes = {
      {"fill_mode", std::string(kModes[seed % 4])},
      {"fill_value", -1.5},
      {"height", out.dim(1)},
      {"width", out.dim(2)},
      {"images", images},
      {"interpolation", std::string(seed % 8 < 4 ? "BILINEAR" : "NEAREST")}};
  // Some transforms are not finite, and some have pixels with k = 0. In all other transforms,
  // coordinates are very unlikely to be whole numbers, where the value may jump.
  const RandomOperand transforms{
      .shape = {images.dim(0), 8}, .low = -1, .high = 1, .special = seed % 3 == 0};
  return {{"ImageProjectiveTransformV3", attributes, {{images}, transforms}, {{out}}, 2e-5},
          {"ImageProjectiveTransformV3Grad", attributes, {{out}, transforms}, {{images}}, 2e-5}};
}

}  // namespace tfjob::kernels::cuda
