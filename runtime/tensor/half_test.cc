#include "runtime/tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tfjob {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kPatterns = 0x10000;

// Returns the value of `bits` in the format with these numbers of exponent and fraction bits,
// computed from the definition of the format.
double ValueOf(uint32_t bits, int exponent_bits, int fraction_bits) {
  const double sign = (bits >> 15) != 0 ? -1 : 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(bits >> fraction_bits & ((1U << exponent_bits) - 1));
  const auto fraction = static_cast<double>(bits & ((1U << fraction_bits) - 1));
  if (exponent == (1 << exponent_bits) - 1)
    return fraction == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign *
         std::ldexp(std::ldexp(1, fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <typename Half>
void ExpectAllPatterns(int exponent_bits, int fraction_bits) {
  for (uint32_t bits = 0; bits < kPatterns; ++bits) {
    const Half half = Half::FromBits(static_cast<uint16_t>(bits));
    const auto value = static_cast<float>(half);
    const double expected = ValueOf(bits, exponent_bits, fraction_bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
      EXPECT_EQ(Half(value).bits >> 15, bits >> 15) << bits;
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), expected) << bits;
    EXPECT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
    EXPECT_EQ(Half(value).bits, bits);
  }
}

TEST(BFloat16, EveryPatternHasItsValueAndReadsBack) {
  ExpectAllPatterns<BFloat16>(8, 7);
}

TEST(Float16, EveryPatternHasItsValueAndReadsBack) {
  ExpectAllPatterns<Float16>(5, 10);
}

// Checks the numbers between every two neighbours: the midpoint is rounded to the even neighbour,
// and the floats next to the midpoint are rounded to the nearer neighbour.
template <typename Half>
void ExpectNearestEven(uint32_t infinity) {
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const Half low = Half::FromBits(static_cast<uint16_t>(bits));
    const Half high = Half::FromBits(static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((static_cast<double>(static_cast<float>(low)) +
                                             static_cast<double>(static_cast<float>(high))) /
                                            2);
    EXPECT_EQ(Half(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    EXPECT_EQ(Half(std::nextafter(middle, 0.0F)).bits, bits) << bits;
    EXPECT_EQ(Half(std::nextafter(middle, kInfinity)).bits, bits + 1) << bits;
    EXPECT_EQ(Half(-middle).bits, 0x8000 | Half(middle).bits) << bits;
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  ExpectNearestEven<BFloat16>(0x7F80);
}

TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  ExpectNearestEven<Float16>(0x7C00);
}

// The expected bits are those of numpy.float16 and ml_dtypes.bfloat16.
TEST(Half, RoundsAsNumPy) {
  struct Case {
    float value;
    uint16_t bfloat16, float16;
  };
  const Case cases[] = {
      {0.0F, 0x0000, 0x0000},       {-0.0F, 0x8000, 0x8000},         {1.0F, 0x3F80, 0x3C00},
      {0.1F, 0x3DCD, 0x2E66},       {3.14159265F, 0x4049, 0x4248},   {65504.0F, 0x4780, 0x7BFF},
      {65519.996F, 0x4780, 0x7BFF}, {65520.0F, 0x4780, 0x7C00},      {-70000.0F, 0xC789, 0xFC00},
      {1e30F, 0x714A, 0x7C00},      {3.3961775e38F, 0x7F80, 0x7C00}, {6e-8F, 0x3381, 0x0001},
      {2.9e-8F, 0x32F9, 0x0000},    {6.1e-5F, 0x3880, 0x03FF},       {kInfinity, 0x7F80, 0x7C00},
      {-kInfinity, 0xFF80, 0xFC00}};
  for (const Case& test : cases) {
    EXPECT_EQ(BFloat16(test.value).bits, test.bfloat16) << test.value;
    EXPECT_EQ(Float16(test.value).bits, test.float16) << test.value;
  }
}

TEST(Half, ConvertsArrays) {
  std::vector<Float16> halves(kPatterns);
  for (uint32_t bits = 0; bits < kPatterns; ++bits)
    halves[bits] = Float16::FromBits(static_cast<uint16_t>(bits));
  std::vector<float> floats(kPatterns);
  ToFloat(halves.data(), floats.data(), kPatterns);
  std::vector<Float16> back(kPatterns);
  FromFloat(floats.data(), back.data(), kPatterns);
  for (uint32_t bits = 0; bits < kPatterns; ++bits) {
    if (std::isnan(floats[bits])) continue;
    ASSERT_EQ(floats[bits], static_cast<float>(halves[bits])) << bits;
    ASSERT_EQ(back[bits].bits, bits);
  }
}

}  // namespace
}  // namespace tfjob
