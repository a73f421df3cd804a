#include "runtime/optimizer/clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tfjob::optimizer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Clipping, SumsSquaresInDouble) {
  for (size_t size : {0u, 1u, 7u, 8u, 9u, 100u}) {
    std::vector<float> floats;
    std::vector<double> doubles;
    double expected = 0;
    for (size_t i = 0; i < size; ++i) {
      floats.push_back(static_cast<float>(i) - 3);
      doubles.push_back(static_cast<double>(i) - 3);
      expected += doubles.back() * doubles.back();
    }
    EXPECT_EQ(SumOfSquares(std::span<const float>(floats)), expected) << size;
    EXPECT_EQ(SumOfSquares(std::span<const double>(doubles)), expected) << size;
  }
  const std::vector<float> large(3, 1e30f);  // as floats, the squares are not finite
  EXPECT_NEAR(SumOfSquares(std::span<const float>(large)) / 3e60, 1, 1e-6);
}

TEST(Clipping, HasTheFactorsOfKeras) {
  const Clipping norm{ClipKind::kNorm, 2}, global{ClipKind::kGlobalNorm, 2};
  for (const Clipping& clipping : {norm, global}) {
    EXPECT_EQ(ClipFactor(clipping, 0), 1);
    EXPECT_EQ(ClipFactor(clipping, 1), 1);
    EXPECT_EQ(ClipFactor(clipping, 4), 1);
    EXPECT_EQ(ClipFactor(clipping, 64), 0.25);
    EXPECT_TRUE(std::isnan(ClipFactor(clipping, std::nan(""))));
  }
  EXPECT_EQ(ClipFactor(norm, kInfinity), 0);
  EXPECT_TRUE(std::isnan(ClipFactor(global, kInfinity)));
}

TEST(Clipping, ClipsEveryElementAfterItIsScaled) {
  std::vector<float> values = {
      4, -4, 1, -1, 0, std::numeric_limits<float>::infinity(), std::nanf("")};
  ClipByValue(std::span(values), 0.5, 1.5);
  EXPECT_EQ(std::vector(values.begin(), values.end() - 1),
            (std::vector<float>{1.5, -1.5, 0.5, -0.5, 0, 1.5}));
  EXPECT_TRUE(std::isnan(values.back()));
  std::vector<double> doubles = {4, -1};
  ClipByValue(std::span(doubles), 0.5, 1.5);
  EXPECT_EQ(doubles, (std::vector<double>{1.5, -0.5}));
}

}  // namespace
}  // namespace tfjob::optimizer
