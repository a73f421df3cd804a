#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "runtime/kernels/cpu/check.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

Attributes How(const std::string& interpolation, const std::string& fill_mode,
               const Shape& images) {
  return {{"interpolation", interpolation},
          {"fill_mode", fill_mode},
          {"fill_value", -1.0},
          {"images", images}};
}

// The expected values were computed with TensorFlow. The transform reads the pixels 1 2 4 8 at the
// coordinates -9.3, -8.05, …, 6.95.
TEST(ImageTransform, ContinuesImagesAsTensorFlowDoes) {
  const struct {
    const char *interpolation, *fill_mode;
    std::vector<float> expected;
  } kCases[] = {
      {"NEAREST", "CONSTANT", {-1, -1, -1, -1, -1, -1, -1, -1, 2, 4, 8, -1, -1, -1}},
      {"NEAREST", "REFLECT", {1, 1, 2, 4, 8, 4, 2, 1, 2, 4, 8, 8, 2, 1}},
      {"NEAREST", "WRAP", {8, 8, 8, 4, 8, 8, 4, 8, 2, 4, 1, 1, 4, 1}},
      {"NEAREST", "NEAREST", {1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8}},
      {"BILINEAR", "CONSTANT", {-1, -1, -1, -1, -1, -1, -1, -0.1F, 1.7F, 3.9F, 6.2F, -1, -1, -1}},
      {"BILINEAR",
       "REFLECT",
       {1.3F, 1, 2.4F, 5.8F, 8, 4.2F, 1.8F, 1, 1.7F, 3.9F, 8, 6.2F, 2.6F, 1.05F}},
      {"BILINEAR", "WRAP", {8, 8, 8, 5.8F, 8, 8, 4.8F, 8, 1.7F, 3.9F, 1, 1.45F, 3.4F, 1}},
      {"BILINEAR", "NEAREST", {1, 1, 1, 1, 1, 1, 1, 1, 1.7F, 3.9F, 8, 8, 8, 8}},
  };
  const Tensor row = Tensor::Of<float>({1, 1, 4, 1}, {1, 2, 4, 8});
  const Tensor transform = Tensor::Of<float>({1, 8}, {1.25F, 0, -9.3F, 0, 1, 0, 0, 0});
  for (const auto& [interpolation, fill_mode, expected] : kCases) {
    SCOPED_TRACE(interpolation + std::string(" ") + fill_mode);
    Tensor out(D::kFloat32, {1, 1, 14, 1});
    for (size_t i = 0; i < expected.size(); ++i) out.data<float>()[i] = expected[i];
    Check({"ImageProjectiveTransformV3",
           How(interpolation, fill_mode, row.shape()),
           {row, transform},
           {out},
           2e-6});
  }
}

struct Transformed {
  Tensor y, dx;
};

// Computes the op directly from its definition, one channel of one pixel at a time, with the fill
// value -1.
Transformed Reference(const Tensor& x, const Tensor& transforms, const Tensor& dy, bool bilinear) {
  const Shape &in = x.shape(), &out = dy.shape();
  Transformed result{dy.Clone(), x.Clone()};
  for (int64_t i = 0; i < in.num_elements(); ++i) SetValue(result.dx, i, 0);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const int64_t c = i % out.dim(3), column = i / out.dim(3) % out.dim(2);
    const int64_t row = i / out.dim(3) / out.dim(2) % out.dim(1);
    const int64_t n = i / out.dim(3) / out.dim(2) / out.dim(1);
    const auto t = [&](int64_t k) { return ValueAt(transforms, n * 8 + k); };
    const auto a = static_cast<double>(column), b = static_cast<double>(row);
    const double k = t(6) * a + t(7) * b + 1;
    double at_x = (t(0) * a + t(1) * b + t(2)) / k, at_y = (t(3) * a + t(4) * b + t(5)) / k;
    if (!bilinear) at_x = std::round(at_x), at_y = std::round(at_y);
    double sum = 0;
    // Compute a weight for every pixel of the image, and of a border of one pixel around the image.
    for (int64_t v = -1; v <= in.dim(1); ++v) {
      for (int64_t u = -1; u <= in.dim(2); ++u) {
        const double weight = std::max(0.0, 1 - std::fabs(at_x - static_cast<double>(u))) *
                              std::max(0.0, 1 - std::fabs(at_y - static_cast<double>(v)));
        const bool inside = v >= 0 && v < in.dim(1) && u >= 0 && u < in.dim(2);
        const int64_t from = ((n * in.dim(1) + v) * in.dim(2) + u) * in.dim(3) + c;
        sum += weight * (inside ? ValueAt(x, from) + 1 : 0);
        if (inside) SetValue(result.dx, from, ValueAt(result.dx, from) + weight * ValueAt(dy, i));
      }
    }
    SetValue(result.y, i, sum - 1);
  }
  return result;
}

TEST(ImageTransform, FollowsItsDefinition) {
  for (const D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& in : {Shape{1, 4, 5, 1}, Shape{3, 7, 3, 3}, Shape{2, 6, 6, 40}}) {
      SCOPED_TRACE(in.ToString());
      Tensor transforms = Values(dtype, {in.dim(0), 8}, 3, -1, 1);
      for (int64_t i = 0; i < transforms.num_elements(); ++i)
        if (i % 8 >= 6) SetValue(transforms, i, ValueAt(transforms, i) / 64);
      const Tensor x = Values(dtype, in, 1), dy = Values(dtype, {in.dim(0), 5, 8, in.dim(3)}, 2);
      for (const bool bilinear : {true, false}) {
        Attributes how = How(bilinear ? "BILINEAR" : "NEAREST", "CONSTANT", in);
        const Transformed expected = Reference(x, transforms, dy, bilinear);
        Check({"ImageProjectiveTransformV3", how, {x, transforms}, {expected.y}, 2e-5});
        Check({"ImageProjectiveTransformV3Grad", how, {dy, transforms}, {expected.dx}, 2e-5});
      }
    }
  }
}

// Coordinates that are infinite, NaN or too large for an integer must not become indices.
TEST(ImageTransform, StaysInsideOfTheImage) {
  const Tensor x = Tensor::Of<float>({4, 1, 2, 1}, {1, 1, 1, 1, 1, 1, 1, 1});
  Tensor transforms(D::kFloat32, {4, 8});
  const float far[] = {1e30F, -1e30F, INFINITY, NAN};
  for (size_t i = 0; i < 4; ++i) {
    transforms.data<float>()[i * 8 + 2] = far[i];
    transforms.data<float>()[i * 8 + 5] = far[i];
  }
  for (const char* mode : {"REFLECT", "WRAP", "NEAREST"}) {
    SCOPED_TRACE(mode);
    for (const char* interpolation : {"NEAREST", "BILINEAR"})
      Check({"ImageProjectiveTransformV3",
             How(interpolation, mode, x.shape()),
             {x, transforms},
             {x}});
  }
  const Tensor filled = Tensor::Of<float>({4, 1, 2, 1}, {-1, -1, -1, -1, -1, -1, -1, -1});
  Check({"ImageProjectiveTransformV3",
         How("NEAREST", "CONSTANT", x.shape()),
         {x, transforms},
         {filled}});
}

// The second pixel has no coordinates in the image, because k = 0 for this pixel.
TEST(ImageTransform, FillsPixelsWithoutAPlace) {
  const Tensor x = Tensor::Of<float>({1, 1, 2, 1}, {3, 5});
  const Tensor transform = Tensor::Of<float>({1, 8}, {1, 0, 0, 0, 1, 0, -1, 0});
  Check({"ImageProjectiveTransformV3",
         How("BILINEAR", "REFLECT", x.shape()),
         {x, transform},
         {Tensor::Of<float>({1, 1, 2, 1}, {3, -1})}});
}

TEST(ImageTransform, RefusesUnknownAttributes) {
  const Operand x = Operand::Dense(D::kFloat32, {1, 2, 2, 1});
  const auto error = [&](const char* interpolation, const char* mode) {
    const Status status =
        PrepareError("ImageProjectiveTransformV3", How(interpolation, mode, x.shape),
                     {x, Operand::Dense(D::kFloat32, {1, 8})}, {x});
    return std::string(status.message());
  };
  EXPECT_THAT(error("CUBIC", "WRAP"),
              testing::EndsWith("expected interpolation BILINEAR or NEAREST, got \"CUBIC\""));
  EXPECT_THAT(
      error("NEAREST", "EDGE"),
      testing::EndsWith("expected fill_mode CONSTANT, REFLECT, WRAP or NEAREST, got \"EDGE\""));
}

}  // namespace
}  // namespace tfjob::kernels::cpu
