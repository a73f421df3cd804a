#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/check.h"
#include "runtime/kernels/stream.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

struct Sizes {
  Shape image, filter;
  Window window;

  int64_t depth() const { return filter.dim(2); }
  Shape output() const {
    return {image.dim(0), window.height.Count(image.dim(1)), window.width.Count(image.dim(2)),
            filter.dim(3)};
  }
};

int64_t At(const Shape& shape, int64_t a, int64_t b, int64_t c, int64_t d) {
  return ((a * shape.dim(1) + b) * shape.dim(2) + c) * shape.dim(3) + d;
}

// Calls body(image element, filter element, output element) for each product in the definition of a
// convolution: output[n,r,c,o] = Σ image[n, r·stride + k·dilation - before, …, channel] ·
// filter[k,…,channel,o].
template <typename Body>
void ForEachTerm(const Sizes& s, const Body& body) {
  const Shape output = s.output();
  const int64_t groups = s.image.dim(3) / s.depth(), per_group = s.filter.dim(3) / groups;
  for (int64_t i = 0; i < output.num_elements() * s.filter.dim(0) * s.filter.dim(1) * s.depth();
       ++i) {
    int64_t rest = i;
    const auto next = [&rest](int64_t size) {
      const int64_t index = rest % size;
      rest /= size;
      return index;
    };
    const int64_t channel = next(s.depth()), kx = next(s.filter.dim(1)), ky = next(s.filter.dim(0));
    const int64_t o = next(output.dim(3)), c = next(output.dim(2)), r = next(output.dim(1));
    const int64_t n = next(output.dim(0));
    const WindowAxis &h = s.window.height, &w = s.window.width;
    const int64_t y = r * h.stride + ky * h.dilation - h.before;
    const int64_t x = c * w.stride + kx * w.dilation - w.before;
    if (y < 0 || y >= s.image.dim(1) || x < 0 || x >= s.image.dim(2)) continue;
    body(At(s.image, n, y, x, o / per_group * s.depth() + channel),
         At(s.filter, ky, kx, channel, o), At(output, n, r, c, o));
  }
}

void CheckSizes(D dtype, const Sizes& s) {
  SCOPED_TRACE(StrCat(s.image.ToString(), " ", s.filter.ToString()));
  const Tensor x = Values(dtype, s.image, 1, -1, 1), f = Values(dtype, s.filter, 2, -1, 1);
  const Tensor dy = Values(dtype, s.output(), 3, -1, 1);
  Tensor y(dtype, s.output()), dx(dtype, s.image), df(dtype, s.filter);
  std::vector<double> sums[3];
  sums[0].resize(static_cast<size_t>(y.num_elements()));
  sums[1].resize(static_cast<size_t>(dx.num_elements()));
  sums[2].resize(static_cast<size_t>(df.num_elements()));
  ForEachTerm(s, [&](int64_t image, int64_t filter, int64_t output) {
    sums[0][static_cast<size_t>(output)] += ValueAt(x, image) * ValueAt(f, filter);
    sums[1][static_cast<size_t>(image)] += ValueAt(dy, output) * ValueAt(f, filter);
    sums[2][static_cast<size_t>(filter)] += ValueAt(dy, output) * ValueAt(x, image);
  });
  Tensor* const results[] = {&y, &dx, &df};
  for (size_t k = 0; k < 3; ++k) {
    for (size_t i = 0; i < sums[k].size(); ++i)
      SetValue(*results[k], static_cast<int64_t>(i), sums[k][i]);
  }
  Attributes window;
  SetWindow(window, s.window);
  // A sum of up to a few thousand products loses a few bits of precision, so use a larger
  // tolerance.
  Check({"Conv2D", window, {x, f}, {y}, 2e-5});
  Tensor bias(dtype, Shape({s.filter.dim(3)})), biased = y.Clone(), positive = y.Clone();
  for (int64_t i = 0; i < bias.num_elements(); ++i) SetValue(bias, i, 0.5 - i);
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    SetValue(biased, i, ValueAt(y, i) + ValueAt(bias, i % bias.num_elements()));
    SetValue(positive, i, std::max(0.0, ValueAt(biased, i)));
  }
  Attributes fused = window;
  fused.Set("bias", true);
  Check({"FusedConv2D", fused, {x, f, bias}, {biased}, 2e-5});
  fused.Set("activation", std::string("Relu"));
  Check({"FusedConv2D", fused, {x, f, bias}, {positive}, 2e-5});
  Check({"Conv2DBackpropInput", window, {f, dy}, {dx}, 2e-5});
  Check({"Conv2DBackpropFilter", window, {x, dy}, {df}, 5e-5});
}

Window Valid(const Shape& filter, int64_t stride = 1, int64_t dilation = 1) {
  return {.height = {filter.dim(0), stride, dilation}, .width = {filter.dim(1), stride, dilation}};
}

Window Same(const Shape& image, const Shape& filter, int64_t stride = 1, int64_t dilation = 1) {
  const Window window = Valid(filter, stride, dilation);
  return {.height = window.height.Same(image.dim(1)), .width = window.width.Same(image.dim(2))};
}

std::vector<Sizes> AllSizes() {
  std::vector<Sizes> all;
  const auto add = [&](const Shape& image, const Shape& filter, const Window& window) {
    all.push_back({image, filter, window});
  };
  const Shape image = {3, 7, 6, 5}, filter = {3, 2, 5, 4};
  add(image, filter, Valid(filter));
  add(image, filter, Same(image, filter));
  add(image, filter, Same(image, filter, 2));
  add(image, filter, Valid(filter, 3));
  add(image, filter, Same(image, filter, 1, 2));
  // A single pixel with one channel and one output, and then a single row, as in one-dimensional
  // convolutions.
  add({1, 1, 1, 1}, {1, 1, 1, 1}, {});
  add({2, 1, 9, 3}, {1, 4, 3, 2}, {.height = {}, .width = {.size = 4, .before = 3}});
  // Several groups, and then one group per channel (depthwise).
  add({2, 5, 5, 6}, {3, 3, 2, 9}, Same({2, 5, 5, 6}, {3, 3, 2, 9}));
  add({2, 5, 5, 6}, {3, 3, 1, 12}, Valid({3, 3, 1, 12}, 2));
  add({2, 5, 5, 16}, {3, 3, 1, 16}, Same({2, 5, 5, 16}, {3, 3, 1, 16}));
  // Sizes that suit vector units, and then more images than parts, with a remainder.
  add({2, 8, 8, 16}, {3, 3, 16, 32}, Same({2, 8, 8, 16}, {3, 3, 16, 32}));
  add({19, 4, 4, 16}, {1, 1, 16, 16}, {});
  return all;
}

TEST(Convolution, FollowsItsDefinition) {
  for (const Sizes& sizes : AllSizes()) {
    CheckSizes(D::kFloat32, sizes);
    CheckSizes(D::kFloat64, sizes);
  }
}

TEST(Convolution, KeepsNaN) {
  Attributes attributes{{"activation", std::string("Relu")}};
  SetWindow(attributes, {});
  for (const D dtype : {D::kFloat32, D::kFloat64}) {
    Tensor x = Values(dtype, {1, 1, 2, 1}, 1, 1, 2), y = x.Clone();
    SetValue(x, 1, NAN);
    SetValue(y, 1, NAN);
    Tensor one(dtype, {1, 1, 1, 1});
    SetValue(one, 0, 1);
    Check({"FusedConv2D", attributes, {x, one}, {y}});
  }
}

// The results are bit-identical for any number of threads, because the division of the images into
// parts depends only on the sizes.
TEST(Convolution, IsTheSameOnAnyNumberOfThreads) {
  const Shape image = {10, 9, 9, 8}, filter = {3, 3, 8, 24};
  const Sizes sizes = {image, filter, Same(image, filter)};
  const Tensor x = Values(D::kFloat32, image, 1), dy = Values(D::kFloat32, sizes.output(), 2);
  KernelRequest request{"Conv2DBackpropFilter", {}, {}, {}};
  SetWindow(request.attributes, sizes.window);
  for (const Shape& shape : {image, sizes.output()})
    request.inputs.push_back(Operand::Dense(D::kFloat32, shape));
  request.outputs.push_back(Operand::Dense(D::kFloat32, filter));
  const auto kernel = CpuKernels().Prepare(request);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Buffer workspace((*kernel)->workspace_bytes());
  std::vector<Tensor> results;
  for (const int threads : {0, 1, 3}) {
    std::unique_ptr<ThreadPool> pool;
    if (threads > 0) pool = std::make_unique<ThreadPool>("test", threads);
    Stream stream(pool.get());
    Tensor result(D::kFloat32, filter);
    const void* inputs[] = {x.bytes().data(), dy.bytes().data()};
    void* outputs[] = {result.bytes().data()};
    (*kernel)->Run(inputs, outputs, workspace.data(), stream);
    results.push_back(std::move(result));
  }
  for (const Tensor& result : results)
    EXPECT_TRUE(std::ranges::equal(result.bytes(), results[0].bytes()));
}

TEST(Convolution, RefusesOperandsThatDoNotFit) {
  const auto refusal = [](const Shape& image, const Shape& filter, const Shape& output,
                          const Window& window) {
    Attributes attributes;
    SetWindow(attributes, window);
    return PrepareError("Conv2D", attributes,
                        {Operand::Dense(D::kFloat32, image), Operand::Dense(D::kFloat32, filter)},
                        {Operand::Dense(D::kFloat32, output)})
        .code();
  };
  const Shape image = {1, 4, 4, 6}, filter = {3, 3, 6, 2};
  EXPECT_EQ(refusal(image, filter, {1, 2, 2, 2}, Valid(filter)), StatusCode::kOk);
  EXPECT_EQ(refusal(image, filter, {1, 2, 2, 3}, Valid(filter)), StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(image, filter, {1, 2, 2, 2}, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(image, {3, 3, 4, 2}, {1, 2, 2, 2}, Valid(filter)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(image, {3, 3, 2, 2}, {1, 2, 2, 2}, Valid(filter)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(image, {5, 5, 6, 2}, {1, 1, 1, 2}, Valid({5, 5, 6, 2})),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::kernels::cpu
