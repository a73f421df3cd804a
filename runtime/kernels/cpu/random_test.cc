#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernels/cpu/check.h"
#include "runtime/kernels/random_stream.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

Tensor Draw(const std::string& op, const Attributes& attributes, int64_t count, int64_t seed = 7) {
  Tensor out(D::kFloat32, Shape({count}));
  const Operand scalar = Operand::Dense(D::kInt64, Shape());
  auto kernel = CpuKernels().Prepare(
      {op, attributes, {scalar, scalar}, {Operand::Dense(D::kFloat32, out.shape())}});
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  const int64_t step = 0;
  const void* inputs[] = {&step, &seed};
  void* outputs[] = {out.bytes().data()};
  Stream stream;
  (*kernel)->Run(inputs, outputs, nullptr, stream);
  return out;
}

struct Moments {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY;
};

Moments MomentsOf(const Tensor& x) {
  Moments m;
  double squares = 0;
  const auto count = static_cast<double>(x.num_elements());
  for (float value : x.data<float>()) {
    m.mean += value / count;
    squares += double{value} * value / count;
    m.low = std::min<double>(m.low, value);
    m.high = std::max<double>(m.high, value);
  }
  m.deviation = std::sqrt(squares - m.mean * m.mean);
  return m;
}

TEST(RandomTest, UniformFillsItsInterval) {
  const Moments m = MomentsOf(Draw("RandomUniform", {{"minval", -2.0}, {"maxval", 4.0}}, 200001));
  EXPECT_NEAR(m.mean, 1, 0.02);
  EXPECT_NEAR(m.deviation, 6 / std::sqrt(12), 0.02);
  EXPECT_GE(m.low, -2);
  EXPECT_LT(m.high, 4);
  EXPECT_NEAR(m.low, -2, 0.001);
  EXPECT_NEAR(m.high, 4, 0.001);
}

TEST(RandomTest, NormalHasItsMoments) {
  const Moments m = MomentsOf(Draw("RandomNormal", {{"mean", 3.0}, {"stddev", 0.5}}, 200001));
  EXPECT_NEAR(m.mean, 3, 0.005);
  EXPECT_NEAR(m.deviation, 0.5, 0.005);
  EXPECT_GT(m.high, 3 + 0.5 * 3.5);
}

TEST(RandomTest, TruncatedNormalStaysWithinTwoDeviations) {
  const Moments m = MomentsOf(Draw("TruncatedNormal", {{"mean", 1.0}, {"stddev", 0.1}}, 200001));
  EXPECT_NEAR(m.mean, 1, 0.001);
  EXPECT_NEAR(m.deviation, 0.1 * 0.87962566, 0.001);
  EXPECT_GE(m.low, 1 - 0.2 - 1e-6);
  EXPECT_LE(m.high, 1 + 0.2 + 1e-6);
}

TEST(RandomTest, SameSeedSameNumbersOtherSeedOrOpOthers) {
  const Attributes one{{"op_id", int64_t{1}}}, two{{"op_id", int64_t{2}}};
  EXPECT_EQ(Attributes({{"x", Draw("RandomUniform", one, 999)}}),
            Attributes({{"x", Draw("RandomUniform", one, 999)}}));
  EXPECT_FALSE(Attributes({{"x", Draw("RandomUniform", one, 999)}}) ==
               Attributes({{"x", Draw("RandomUniform", one, 999, 8)}}));
  EXPECT_FALSE(Attributes({{"x", Draw("RandomUniform", one, 999)}}) ==
               Attributes({{"x", Draw("RandomUniform", two, 999)}}));
}

// Dropout must use the words that ops.md specifies, so that all devices drop the same elements.
// Rows have 5 elements, so most rows start in the middle of a block.
TEST(DropoutTest, KeepsTheElementsThatPhiloxSays) {
  const int64_t seed = (int64_t{3} << 32) + 11, step = 42;
  const Attributes attributes{{"rate", 0.25}, {"op_id", int64_t{9}}, {"replica", int64_t{2}}};
  for (const Shape& shape : {Shape({7, 5}), Shape({3000}), Shape({100, 333})}) {
    const Tensor x = Values(D::kFloat32, shape, 1, 1, 2);
    Tensor y = x.Clone();
    const RandomStream stream{static_cast<uint64_t>(seed), 9, 2, 42};
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const uint32_t word = stream.Block(static_cast<uint32_t>(i / 4))[static_cast<size_t>(i % 4)];
      SetValue(y, i, word >= 0x40000000u ? ValueAt(x, i) / 0.75 : 0);
    }
    for (const char* op : {"Dropout", "DropoutGrad"}) {
      Check({op, attributes, {x, Tensor::Scalar(step), Tensor::Scalar(seed)}, {y}});
    }
  }
}

TEST(RandomTest, EveryPartOfTheStreamMatters) {
  const PhiloxBlock block = RandomStream{1, 2, 3, 4}.Block(5);
  EXPECT_EQ(block, (RandomStream{1, 2, 3, 4}.Block(5)));
  EXPECT_NE(block, (RandomStream{1, 2, 3, 4}.Block(6)));
  EXPECT_NE(block, (RandomStream{1, 2, 3, 4}.Block(5, 1)));
  EXPECT_NE(block, (RandomStream{2, 2, 3, 4}.Block(5)));
  EXPECT_NE(block, (RandomStream{1, 3, 3, 4}.Block(5)));
  EXPECT_NE(block, (RandomStream{1, 2, 4, 4}.Block(5)));
  EXPECT_NE(block, (RandomStream{1, 2, 3, 5}.Block(5)));
}

TEST(DropoutTest, RefusesARateThatDropsEverything) {
  const Operand x = Operand::Dense(D::kFloat32, Shape({2}));
  const Operand scalar = Operand::Dense(D::kInt64, Shape());
  for (double rate : {1.0, -0.1, static_cast<double>(NAN)}) {
    EXPECT_FALSE(PrepareError("Dropout", {{"rate", rate}}, {x, scalar, scalar}, {x}).ok()) << rate;
  }
  EXPECT_FALSE(PrepareError("Dropout", {{"rate", 0.5}}, {x, x, scalar}, {x}).ok());
}

}  // namespace
}  // namespace tfjob::kernels::cpu
