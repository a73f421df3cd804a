// Compares pooling with that of the CPU, over random shapes.
#include <gtest/gtest.h>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cuda {
namespace {

int64_t DrawSize(PhiloxStream& random, std::initializer_list<int64_t> sizes) {
  return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
}

WindowAxis DrawPool(PhiloxStream& random, int64_t inputs) {
  WindowAxis axis{.size = DrawSize(random, {1, 2, 3, 4}),
                  .stride = DrawSize(random, {1, 2, 2, 3, 6})};
  axis.before = random.Below(static_cast<uint32_t>(axis.size));
  axis.after = random.Below(static_cast<uint32_t>(axis.size));
  if (inputs + axis.before + axis.after < axis.size) axis = {.stride = axis.stride};
  return axis;
}

TEST(Pooling, EqualsTheCpus) {
  for (uint64_t seed = 0; seed < 32; ++seed) {
    PhiloxStream random(seed);
    const Shape image = {DrawSize(random, {1, 2, 3}), DrawSize(random, {1, 4, 5, 9}),
                         DrawSize(random, {1, 3, 6, 7}), DrawSize(random, {1, 3, 4, 33})};
    const Window window = {DrawPool(random, image.dim(1)), DrawPool(random, image.dim(2))};
    const Shape pooled = {image.dim(0), window.height.Count(image.dim(1)),
                          window.width.Count(image.dim(2)), image.dim(3)};
    Attributes attributes;
    SetWindow(attributes, window);
    // If the values are special, some windows contain NaN, or only infinities.
    const RandomOperand values{.shape = image, .special = seed % 2 == 1, .whole = true};
    const RandomOperand maxima{.shape = pooled, .special = seed % 2 == 1, .whole = true};
    Compare({"MaxPool", attributes, {values}, {{pooled}}, 0}, seed);
    Compare({"AvgPool", attributes, {{image}}, {{pooled}}}, seed);
    Compare({"AvgPoolGrad", attributes, {{pooled}}, {{image}}}, seed);
    // The maxima are random, too: the op only compares the values with them.
    Compare({"MaxPoolGrad", attributes, {values, maxima, {pooled}}, {{image}}}, seed);
  }
}

}  // namespace
}  // namespace tfjob::kernels::cuda
