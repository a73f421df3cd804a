#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernels/cpu/check.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

struct Pooled {
  Tensor max, average, max_gradient, average_gradient;
};

// Computes both kinds of pooling and their gradients directly from the definition, one channel of
// one window at a time.
Pooled Reference(const Tensor& x, const Tensor& dy, const Window& window) {
  const Shape &image = x.shape(), &out = dy.shape();
  Pooled result{dy.Clone(), dy.Clone(), Tensor(x.dtype(), image), Tensor(x.dtype(), image)};
  for (int64_t i = 0; i < image.num_elements(); ++i) {
    SetValue(result.max_gradient, i, 0);
    SetValue(result.average_gradient, i, 0);
  }
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const int64_t c = i % out.dim(3), column = i / out.dim(3) % out.dim(2);
    const int64_t row = i / out.dim(3) / out.dim(2) % out.dim(1);
    const int64_t n = i / out.dim(3) / out.dim(2) / out.dim(1);
    std::vector<int64_t> seen;
    for (int64_t k = 0; k < window.height.size * window.width.size; ++k) {
      const int64_t h = row * window.height.stride - window.height.before + k / window.width.size;
      const int64_t w = column * window.width.stride - window.width.before + k % window.width.size;
      if (h >= 0 && h < image.dim(1) && w >= 0 && w < image.dim(2))
        seen.push_back(((n * image.dim(1) + h) * image.dim(2) + w) * image.dim(3) + c);
    }
    double sum = 0;
    int64_t largest = seen[0];
    const auto count = static_cast<double>(seen.size());
    for (const int64_t at : seen) {
      sum += ValueAt(x, at);
      if (ValueAt(x, at) > ValueAt(x, largest)) largest = at;
      SetValue(result.average_gradient, at,
               ValueAt(result.average_gradient, at) + ValueAt(dy, i) / count);
    }
    SetValue(result.max, i, ValueAt(x, largest));
    SetValue(result.average, i, sum / count);
    SetValue(result.max_gradient, largest, ValueAt(result.max_gradient, largest) + ValueAt(dy, i));
  }
  return result;
}

void CheckPooling(const Tensor& x, const Window& window) {
  SCOPED_TRACE(x.shape().ToString());
  const Shape& image = x.shape();
  const Shape out = {image.dim(0), window.height.Count(image.dim(1)),
                     window.width.Count(image.dim(2)), image.dim(3)};
  const Tensor dy = Values(x.dtype(), out, 2);
  const Pooled expected = Reference(x, dy, window);
  Attributes attributes;
  SetWindow(attributes, window);
  Check({"MaxPool", attributes, {x}, {expected.max}});
  Check({"AvgPool", attributes, {x}, {expected.average}, 2e-6});
  Check({"MaxPoolGrad", attributes, {x, expected.max, dy}, {expected.max_gradient}, 2e-6});
  Check({"AvgPoolGrad", attributes, {dy}, {expected.average_gradient}, 2e-6});
}

TEST(Pooling, FollowsItsDefinition) {
  for (const D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : {Shape{1, 4, 4, 1}, Shape{3, 5, 7, 3}, Shape{2, 6, 6, 300}}) {
      const Tensor x = Values(dtype, shape, 1);
      CheckPooling(x, {.height = {2, 2}, .width = {2, 2}});
      CheckPooling(x, {.height = {3, 1}, .width = {2, 3}});  // overlapping rows, gaps in columns
      const WindowAxis axis{3, 2};
      CheckPooling(x, {.height = axis.Same(shape.dim(1)), .width = axis.Same(shape.dim(2))});
    }
  }
}

TEST(Pooling, GivesTheGradientToTheFirstOfEqualMaxima) {
  const Tensor x = Tensor::Of<float>({1, 2, 2, 1}, {1, 5, 5, 5});
  CheckPooling(x, {.height = {2, 1}, .width = {2, 1}});
  CheckPooling(x, {.height = {2, 2}, .width = {2, 2}});
}

TEST(Pooling, KeepsNaN) {
  const Tensor x = Tensor::Of<float>({1, 1, 4, 1}, {1, NAN, NAN, 2});
  Attributes attributes;
  SetWindow(attributes, {.height = {}, .width = {2, 2}});
  Check({"MaxPool", attributes, {x}, {Tensor::Of<float>({1, 1, 2, 1}, {NAN, NAN})}});
}

TEST(Pooling, KeepsNaNInWindowsOfTwoByTwo) {
  const Tensor x = Tensor::Of<float>({1, 2, 4, 1}, {1, NAN, 3, 4, 2, 5, NAN, 1});
  const Tensor y = Tensor::Of<float>({1, 1, 2, 1}, {NAN, NAN});
  Attributes attributes;
  SetWindow(attributes, {.height = {2, 2}, .width = {2, 2}});
  Check({"MaxPool", attributes, {x}, {y}});
  const Tensor dy = Tensor::Of<float>({1, 1, 2, 1}, {7, 8});
  const Tensor zero = Tensor::Of<float>({1, 2, 4, 1}, {0, 0, 0, 0, 0, 0, 0, 0});
  Check({"MaxPoolGrad", attributes, {x, y, dy}, {zero}});
}

TEST(Pooling, RefusesOperandsThatDoNotFit) {
  const auto refusal = [](const Window& window, const Shape& pooled) {
    Attributes attributes;
    SetWindow(attributes, window);
    return PrepareError("MaxPool", attributes, {Operand::Dense(D::kFloat32, {1, 4, 4, 2})},
                        {Operand::Dense(D::kFloat32, pooled)})
        .code();
  };
  EXPECT_EQ(refusal({.height = {2, 2}, .width = {2, 2}}, {1, 2, 2, 2}), StatusCode::kOk);
  EXPECT_EQ(refusal({.height = {2, 2}, .width = {2, 2}}, {1, 2, 3, 2}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal({.height = {2, 1, 2}, .width = {2, 2}}, {1, 2, 2, 2}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal({.height = {5}, .width = {}}, {1, 0, 4, 2}), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::kernels::cpu
