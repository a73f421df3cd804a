#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/check.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

constexpr double kEpsilon = 0.01;

Tensor Zeros(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) SetValue(tensor, i, 0);
  return tensor;
}

// Contains the results of a batch normalisation and of its gradient.
struct NormReference {
  Tensor y, mean, variance;
  Tensor dx, d_gamma, d_beta, d_side;
};

// Computes a batch normalisation with a side input, and its gradient, directly from the definition.
// `in` contains x, gamma, beta, side and dy.
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

// The first shape has only a few rows, which form a single block. The last shape has several chunks
// and a remainder.
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

// The mean is 1,000 and the deviation is 1. In float32, the mean of the squares minus the square of
// the mean would have no correct digit.
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

// Checks that the results are bit-identical for any number of threads.
void ExpectSameOnAnyThreads(const char* op, const std::vector<Tensor>& in,
                            const std::vector<Shape>& out) {
  SCOPED_TRACE(op);
  KernelRequest request{op, NormAttributes(op[std::string(op).size() - 1] == 'x'), {}, {}};
  std::vector<const void*> inputs;
  for (const Tensor& input : in) {
    request.inputs.push_back(Operand::Dense(input.dtype(), input.shape()));
    inputs.push_back(input.bytes().data());
  }
  for (const Shape& shape : out) request.outputs.push_back(Operand::Dense(D::kFloat32, shape));
  const auto kernel = CpuKernels().Prepare(request);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Buffer workspace((*kernel)->workspace_bytes());
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {0, 1, 3}) {
    ThreadPool pool("test", threads);
    Stream stream(threads > 0 ? &pool : nullptr);
    std::vector<void*> outputs;
    std::vector<Tensor>& result = results.emplace_back();
    result.reserve(out.size());
    for (const Shape& shape : out)
      outputs.push_back(result.emplace_back(D::kFloat32, shape).bytes().data());
    (*kernel)->Run(inputs.data(), outputs.data(), workspace.data(), stream);
  }
  for (const std::vector<Tensor>& result : results) {
    for (size_t i = 0; i < result.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(result[i].bytes(), results[0][i].bytes())) << i;
  }
}

// The results are bit-identical for any number of threads, because the chunks depend only on the
// sizes. This is necessary because all tasks must have the same statistics.
TEST(BatchNorm, IsTheSameOnAnyNumberOfThreads) {
  const Shape shape = {5000, 24}, c = {24};
  const Tensor x = Values(D::kFloat32, shape, 1), factors = Values(D::kFloat32, c, 2);
  const Tensor dy = Values(D::kFloat32, shape, 3), side = Values(D::kFloat32, shape, 4);
  const Tensor variance = Values(D::kFloat32, c, 5, 1, 2);
  ExpectSameOnAnyThreads("FusedBatchNorm", {x, factors, factors}, {shape, c, c});
  ExpectSameOnAnyThreads("FusedBatchNormEx", {x, factors, factors, side}, {shape, c, c});
  ExpectSameOnAnyThreads("FusedBatchNormGrad", {dy, x, factors, factors, factors, variance},
                         {shape, c, c});
  ExpectSameOnAnyThreads("FusedBatchNormGradEx", {dy, x, factors, factors, factors, variance, side},
                         {shape, c, c, shape});
}

TEST(BatchNorm, RejectsOperandsThatDoNotFit) {
  const Operand x = Operand::Dense(D::kFloat32, {4, 3}), c = Operand::Dense(D::kFloat32, {3});
  const Operand wrong = Operand::Dense(D::kFloat32, {4});
  const Operand other = Operand::Dense(D::kFloat64, {3});
  const auto expect = [](const char* op, const Attributes& attributes, std::vector<Operand> in,
                         std::vector<Operand> out, const char* expected) {
    const Status status = PrepareError(op, attributes, std::move(in), std::move(out));
    EXPECT_NE(Message(status).find(expected), std::string::npos) << status;
  };
  const Attributes none = NormAttributes(false), relu = NormAttributes(true);
  EXPECT_EQ(PrepareError("FusedBatchNorm", none, {x, c, c}, {x, c, c}), OkStatus());
  expect("FusedBatchNorm", none, {x, wrong, c}, {x, c, c}, "expected shape [3], got");
  expect("FusedBatchNorm", none, {x, c, c}, {x, c, wrong}, "expected shape [3], got");
  expect("FusedBatchNorm", none, {x, other, c}, {x, c, c}, "the operands differ in dtype");
  expect("FusedBatchNormEx", relu, {x, c, c, c}, {x, c, c}, "expected shape [4,3], got");
  expect("FusedBatchNormEx", none, {x, c, c, x}, {x, c, c}, "a side input needs an activation");
  expect("FusedBatchNormEx", {{"activation", std::string("Tanh")}}, {x, c, c}, {x, c, c},
         "no activation \"Tanh\"");
  expect("FusedBatchNormGradEx", relu, {x, x, c, c, c, c, x}, {x, c, c},
         "expected 7 inputs and 4 outputs");
}

}  // namespace
}  // namespace tfjob::kernels::cpu
