#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/check.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

constexpr double kEpsilon = 0.01;

Tensor Zeros(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) SetValue(tensor, i, 0);
  return tensor;
}

// Holds the results of a batch normalisation and of its gradient.
struct NormReference {
  Tensor y, mean, variance;
  Tensor dx, d_gamma, d_beta, d_side;
};

// Computes a batch normalisation with a side input, and its gradient, by definition. `in` holds x,
// gamma, beta, side and dy.
NormReference Reference(const std::vector<Tensor>& in, bool relu) {
  const Tensor& x = in[0];
  const D dtype = x.dtype();
  const int64_t count = x.shape().num_elements(), channels = x.shape().dim(-1);
  const double rows = static_cast<double>(count / channels);
  const Tensor none = Zeros(dtype, {channels});
  NormReference r{x.Clone(),    none.Clone(), none.Clone(), x.Clone(),
                  none.Clone(), none.Clone(), x.Clone()};
  for (int64_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0, sum = 0, product = 0;
    for (int64_t i = c; i < count; i += channels) mean += ValueAt(x, i) / rows;
    for (int64_t i = c; i < count; i += channels)
      variance += std::pow(ValueAt(x, i) - mean, 2) / rows;
    const double scale = 1 / std::sqrt(variance + kEpsilon), gamma = ValueAt(in[1], c);
    for (int64_t i = c; i < count; i += channels) {
      const double normal = (ValueAt(x, i) - mean) * scale;
      const double y = gamma * normal + ValueAt(in[2], c) + ValueAt(in[3], i);
      const double g = relu && y <= 0 ? 0 : ValueAt(in[4], i);
      SetValue(r.y, i, relu ? std::max(0.0, y) : y);
      SetValue(r.d_side, i, g);
      sum += g;
      product += g * normal;
    }
    for (int64_t i = c; i < count; i += channels) {
      const double normal = (ValueAt(x, i) - mean) * scale;
      SetValue(r.dx, i,
               gamma * scale * (ValueAt(r.d_side, i) - sum / rows - normal * product / rows));
    }
    SetValue(r.mean, c, mean);
    SetValue(r.variance, c, variance);
    SetValue(r.d_gamma, c, product);
    SetValue(r.d_beta, c, sum);
  }
  return r;
}

Attributes NormAttributes(bool relu) {
  Attributes attributes = {{"epsilon", kEpsilon}};
  if (relu) attributes.Set("activation", std::string("Relu"));
  return attributes;
}

// The first shape has a few rows of one block, the last has several chunks with a rest.
const std::vector<Shape> kShapes = {{3, 2}, {2, 3, 5, 20}, {3, 41, 35, 17}};

TEST(BatchNorm, NormalisesEachChannel) {
  for (const D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.ToString());
      const Shape channels = {shape.dim(-1)};
      const Tensor x = Values(dtype, shape, 1, 2, 5), dy = Values(dtype, shape, 2);
      const Tensor gamma = Values(dtype, channels, 3), beta = Values(dtype, channels, 4);
      for (const bool relu : {false, true}) {
        const NormReference r = Reference({x, gamma, beta, Zeros(dtype, shape), dy}, relu);
        const Attributes attributes = NormAttributes(relu);
        const char* op = relu ? "FusedBatchNormEx" : "FusedBatchNorm";
        Check({op, attributes, {x, gamma, beta}, {r.y, r.mean, r.variance}, 1e-5});
        Check({relu ? "FusedBatchNormGradEx" : "FusedBatchNormGrad",
               attributes,
               {dy, x, gamma, beta, r.mean, r.variance},
               {r.dx, r.d_gamma, r.d_beta},
               5e-5});
      }
    }
  }
}

TEST(BatchNorm, AddsASideInputBeforeTheActivation) {
  for (const D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.ToString());
      const Shape channels = {shape.dim(-1)};
      const Tensor x = Values(dtype, shape, 1, 2, 5), side = Values(dtype, shape, 5);
      const Tensor gamma = Values(dtype, channels, 3), beta = Values(dtype, channels, 4);
      const Tensor dy = Values(dtype, shape, 2), more = Values(dtype, shape, 6);
      const Tensor both = Elementwise(dtype, {dy, more}, [](const auto& v) { return v[0] + v[1]; });
      const NormReference one = Reference({x, gamma, beta, side, dy}, true);
      const NormReference two = Reference({x, gamma, beta, side, both}, true);
      const Attributes attributes = NormAttributes(true);
      Check({"FusedBatchNormEx",
             attributes,
             {x, gamma, beta, side},
             {one.y, one.mean, one.variance},
             1e-5});
      Check({"FusedBatchNormGradEx",
             attributes,
             {dy, x, gamma, beta, one.mean, one.variance, one.y},
             {one.dx, one.d_gamma, one.d_beta, one.d_side},
             5e-5});
      Check({"FusedBatchNormGradEx",
             attributes,
             {dy, x, gamma, beta, one.mean, one.variance, one.y, more},
             {two.dx, two.d_gamma, two.d_beta, two.d_side},
             5e-5});
    }
  }
}

// With a mean of 1,000 and a deviation of 1, the mean of the squares minus the square of the mean
// would have no correct digit in float32.
TEST(BatchNorm, KeepsTheVarianceOfValuesFarFromZero) {
  const Shape shape = {300, 50, 4};
  const Tensor x = Values(D::kFloat32, shape, 1, 998, 1002);
  const Tensor ones = Values(D::kFloat32, {4}, 2, 1, 1);
  const NormReference r = Reference(
      {x, ones, Zeros(D::kFloat32, {4}), Zeros(D::kFloat32, shape), Zeros(D::kFloat32, shape)},
      false);
  Check({"FusedBatchNorm",
         NormAttributes(false),
         {x, ones, Zeros(D::kFloat32, {4})},
         {r.y, r.mean, r.variance},
         1e-3});
}

// The chunks depend only on the sizes, so the bits do not depend on the threads.
TEST(BatchNorm, IsTheSameOnAnyNumberOfThreads) {
  const Shape shape = {5000, 24};
  const Operand rows = Operand::Dense(D::kFloat32, shape), c = Operand::Dense(D::kFloat32, {24});
  const KernelRequest request{"FusedBatchNorm", NormAttributes(false), {rows, c, c}, {rows, c, c}};
  const auto kernel = CpuKernels().Prepare(request);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Buffer workspace((*kernel)->workspace_bytes());
  const Tensor x = Values(D::kFloat32, shape, 1), factors = Values(D::kFloat32, {24}, 2);
  std::vector<Tensor> results;
  for (const int threads : {0, 1, 3}) {
    ThreadPool pool("test", threads);
    Stream stream(threads > 0 ? &pool : nullptr);
    Tensor y(D::kFloat32, shape), mean(D::kFloat32, {24}), variance(D::kFloat32, {24});
    const void* inputs[] = {x.bytes().data(), factors.bytes().data(), factors.bytes().data()};
    void* outputs[] = {y.bytes().data(), mean.bytes().data(), variance.bytes().data()};
    (*kernel)->Run(inputs, outputs, workspace.data(), stream);
    results.push_back(std::move(y));
  }
  for (const Tensor& result : results)
    EXPECT_TRUE(std::ranges::equal(result.bytes(), results[0].bytes()));
}

TEST(BatchNorm, RejectsOperandsThatDoNotFit) {
  const Operand x = Operand::Dense(D::kFloat32, {4, 3}), c = Operand::Dense(D::kFloat32, {3});
  const Operand wrong = Operand::Dense(D::kFloat32, {4});
  const auto error = [&](const char* op, const Attributes& attributes, std::vector<Operand> in,
                         std::vector<Operand> out) {
    return std::string(Message(PrepareError(op, attributes, std::move(in), std::move(out))));
  };
  EXPECT_EQ(error("FusedBatchNorm", NormAttributes(false), {x, c, c}, {x, c, c}), "");
  EXPECT_NE(error("FusedBatchNorm", NormAttributes(false), {x, wrong, c}, {x, c, c}), "");
  EXPECT_NE(error("FusedBatchNorm", NormAttributes(false), {x, c, c}, {x, c, wrong}), "");
  EXPECT_NE(error("FusedBatchNormEx", NormAttributes(true), {x, c, c, c}, {x, c, c}), "");
  EXPECT_NE(error("FusedBatchNormEx", NormAttributes(false), {x, c, c, x}, {x, c, c}), "");
  EXPECT_NE(error("FusedBatchNormEx", {{"activation", std::string("Tanh")}}, {x, c, c}, {x, c, c}),
            "");
  EXPECT_NE(error("FusedBatchNormGradEx", NormAttributes(true), {x, x, c, c, c, c, x}, {x, c, c}),
            "");
}

}  // namespace
}  // namespace tfjob::kernels::cpu
