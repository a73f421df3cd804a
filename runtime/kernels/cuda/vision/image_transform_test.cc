// Compares projective transformations with those of the CPU, over random shapes.
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"

namespace tfjob::kernels::cuda {
namespace {

TEST(ImageTransforms, EqualTheCpus) {
  constexpr const char* kModes[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
  for (uint64_t seed = 0; seed < 32; ++seed) {
    PhiloxStream random(seed);
    const auto size = [&random](std::initializer_list<int64_t> sizes) {
      return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
    };
    const Shape images = {size({1, 2, 3}), size({1, 4, 9}), size({1, 3, 7}), size({1, 3, 33})};
    const Shape out = {images.dim(0), size({1, 5, 8}), size({1, 2, 9}), images.dim(3)};
    Attributes attributes = {{"fill_mode", std::string(kModes[seed % 4])},
                             {"fill_value", -1.5},
                             {"height", out.dim(1)},
                             {"width", out.dim(2)},
                             {"images", images},
                             {"interpolation", std::string(seed % 8 < 4 ? "BILINEAR" : "NEAREST")}};
    // Some transforms are not finite, and some have pixels with k = 0. In all others, it is very
    // unlikely that a coordinate is a whole number, at which the value may jump.
    const RandomOperand transforms{
        .shape = {images.dim(0), 8}, .low = -1, .high = 1, .special = seed % 3 == 0};
    const Comparison forward{
        "ImageProjectiveTransformV3", attributes, {{images}, transforms}, {{out}}, 2e-5};
    Compare(forward, seed);
    const Comparison backward{
        "ImageProjectiveTransformV3Grad", attributes, {{out}, transforms}, {{images}}, 2e-5};
    Compare(backward, seed);
  }
}

}  // namespace
}  // namespace tfjob::kernels::cuda
