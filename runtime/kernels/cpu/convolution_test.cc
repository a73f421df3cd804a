#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/check.h"
#include "runtime/kernels/cpu/scaled_rows.h"
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

// Checks the convolution and its gradients. Only the given share of the elements of dy is not 0.
void CheckSizes(D dtype, const Sizes& s, double density = 1) {
  SCOPED_TRACE(StrCat(s.image.ToString(), " ", s.filter.ToString(), " ", density));
  const Tensor x = Values(dtype, s.image, 1, -1, 1), f = Values(dtype, s.filter, 2, -1, 1);
  Tensor dy = Values(dtype, s.output(), 3, -1, 1);
  const Tensor kept = Values(dtype, s.output(), 4, 0, 1);
  for (int64_t i = 0; i < dy.num_elements(); ++i)
    if (ValueAt(kept, i) > density) SetValue(dy, i, 0);
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
  if (density < 1) window.Set("dy_density", density);
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

KernelRequest FilterGradientOf(const Sizes& sizes) {
  KernelRequest request{"Conv2DBackpropFilter", {}, {}, {}};
  SetWindow(request.attributes, sizes.window);
  for (const Shape& shape : {sizes.image, sizes.output()})
    request.inputs.push_back(Operand::Dense(D::kFloat32, shape));
  request.outputs.push_back(Operand::Dense(D::kFloat32, sizes.filter));
  return request;
}

// Returns the output of the request, computed with the help of `threads` additional threads.
Tensor RunOn(int threads, const KernelRequest& request, const Tensor& a, const Tensor& b) {
  Tensor result(D::kFloat32, request.outputs[0].shape);
  const auto kernel = CpuKernels().Prepare(request);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return result;
  Buffer workspace((*kernel)->workspace_bytes());
  std::unique_ptr<ThreadPool> pool;
  if (threads > 0) pool = std::make_unique<ThreadPool>("test", threads);
  Stream stream(pool.get());
  const void* inputs[] = {a.bytes().data(), b.bytes().data()};
  void* outputs[] = {result.bytes().data()};
  (*kernel)->Run(inputs, outputs, workspace.data(), stream);
  return result;
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

// Sizes for which gradients with a small density skip zeros.
std::vector<Sizes> SparseSizes() {
  std::vector<Sizes> all;
  const auto add = [&](const Shape& image, const Shape& filter, const Window& window) {
    all.push_back({image, filter, window});
  };
  const Shape image = {3, 7, 6, 32}, filter = {5, 5, 32, 24};
  add(image, filter, Same(image, filter));
  add(image, {3, 3, 32, 19}, Valid({3, 3, 32, 19}));
  add(image, {3, 3, 32, 17}, Same(image, {3, 3, 32, 17}, 2));    // strides
  add({1, 9, 9, 32}, {3, 3, 32, 16}, Valid({3, 3, 32, 16}, 4));  // inputs that no window covers
  // Rows of the filter that are apart, and rows of more vectors than stay in registers.
  add(image, {3, 3, 32, 16}, {.height = {.size = 3, .dilation = 2}, .width = {3}});
  add({2, 6, 6, 48}, {3, 5, 48, 16}, Same({2, 6, 6, 48}, {3, 5, 48, 16}));
  // A single output, and more images than parts.
  add(image, {5, 5, 32, 1}, Same(image, {5, 5, 32, 1}));
  add({19, 4, 4, 48}, {3, 3, 48, 16}, Same({19, 4, 4, 48}, {3, 3, 48, 16}));
  return all;
}

TEST(Convolution, HasGradientsThatFollowTheirDefinitionIfDyIsSparse) {
  for (const Sizes& sizes : SparseSizes()) {
    for (const double density : {0.2, 0.0}) CheckSizes(D::kFloat32, sizes, density);
  }
  CheckSizes(D::kFloat64, SparseSizes()[0], 0.2);
}

// The density is only a hint about speed: a dy with more elements has the right gradients, too.
// Sizes for which skipping zeros would be slower, and those for which it is not supported, are
// computed as without the hint.
TEST(Convolution, DoesNotRelyOnTheDensity) {
  std::vector<Sizes> all = AllSizes();
  for (const Sizes& sizes : SparseSizes()) all.push_back(sizes);
  for (const Sizes& sizes : all) CheckSizes(D::kFloat32, sizes, 0.999);
  Sizes dense = SparseSizes()[0];
  const Tensor x = Values(D::kFloat32, dense.image, 1), dy = Values(D::kFloat32, dense.output(), 2);
  const auto gradient = [&](double density) {
    KernelRequest request = FilterGradientOf(dense);
    request.attributes.Set("dy_density", density);
    return RunOn(0, request, x, dy);
  };
  const Tensor sparse = gradient(0.1), expected = gradient(1);
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    ASSERT_NEAR(ValueAt(sparse, i), ValueAt(expected, i), 2e-3);
}

// Elements of dy that are 0 are skipped, so the infinite pixels that they would multiply do not
// matter. Without the attribute, they make the gradient NaN.
TEST(Convolution, SkipsZerosOnlyIfDyIsSaidToBeSparse) {
  const Sizes sizes = SparseSizes()[0];
  Tensor x(D::kFloat32, sizes.image), dy(D::kFloat32, sizes.output());
  for (int64_t i = 0; i < x.num_elements(); ++i) SetValue(x, i, INFINITY);
  for (int64_t i = 0; i < dy.num_elements(); ++i) SetValue(dy, i, 0);
  KernelRequest request = FilterGradientOf(sizes);
  EXPECT_TRUE(std::isnan(ValueAt(RunOn(0, request, x, dy), 0)));
  request.attributes.Set("dy_density", 0.25);
  EXPECT_EQ(ValueAt(RunOn(0, request, x, dy), 0), 0);
}

// The results are bit-identical for any number of threads, because the division of the images into
// parts depends only on the sizes.
TEST(Convolution, IsTheSameOnAnyNumberOfThreads) {
  const Shape image = {10, 9, 9, 32}, filter = {3, 3, 32, 24};
  const Sizes sizes = {image, filter, Same(image, filter)};
  const Tensor x = Values(D::kFloat32, image, 1), dy = Values(D::kFloat32, sizes.output(), 2);
  for (const double density : {1.0, 0.1}) {
    KernelRequest request = FilterGradientOf(sizes);
    request.attributes.Set("dy_density", density);
    const Tensor alone = RunOn(0, request, x, dy);
    for (const int threads : {1, 3})
      EXPECT_TRUE(std::ranges::equal(RunOn(threads, request, x, dy).bytes(), alone.bytes()));
  }
}

std::vector<ScaledRow> TermsOf(const std::vector<float>& values, bool wide) {
  std::vector<ScaledRow> terms(values.size());
  const auto count = static_cast<int64_t>(values.size());
  terms.resize(static_cast<size_t>(FindScaledRows(count, values.data(), 48, terms.data(), wide)));
  return terms;
}

// Runs the code for processors without AVX-512 on any processor. In builds for processors with
// fused multiplication and addition, both widths have the same bits.
TEST(ScaledRows, AreFoundAndAddedWithVectorsOfEitherWidth) {
  std::vector<float> values(27);
  for (const size_t i : {0u, 3u, 8u, 9u, 20u, 26u}) values[i] = 0.1f * static_cast<float>(i + 1);
  for (const int64_t length : {16, 48, 208, 464}) {
    std::vector<float> rows(static_cast<size_t>(26 * 48 + length));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 37) - 18.3f;
    std::vector<float> expected(static_cast<size_t>(length), 0.5f);
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t c = 0; c < expected.size(); ++c) expected[c] += values[i] * rows[i * 48 + c];
    std::vector<float> narrow_sums;
    for (const bool wide : {false, HasWideVectors()}) {
      const std::vector<ScaledRow> terms = TermsOf(values, wide);
      ASSERT_EQ(terms.size(), 6u);
      std::vector<float> sums(static_cast<size_t>(length), 0.5f);
      RowSum(length, wide).Add(terms, rows.data(), sums.data());
      for (size_t c = 0; c < sums.size(); ++c) ASSERT_NEAR(sums[c], expected[c], 2e-4) << c;
      if (!wide) narrow_sums = sums;
#ifdef __FMA__
      EXPECT_EQ(sums, narrow_sums);
#endif
    }
  }
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
