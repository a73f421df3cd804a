#include "runtime/collectives/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/tensor/half.h"

namespace tfjob::collectives {
namespace {

// A second, very simple implementation of the rule in reduction.h: the tree over one element of
// each rank.
template <typename T, typename F>
T TreeOf(const std::vector<std::vector<T>>& ranks, size_t first, size_t last, size_t at,
         F combine) {
  if (last - first == 1) return ranks[first][at];
  size_t half = 1;
  while (2 * half < last - first) half *= 2;
  return combine(TreeOf(ranks, first, first + half, at, combine),
                 TreeOf(ranks, first + half, last, at, combine));
}

// Returns values of very different magnitudes, so that a sum in another order has different bits.
template <typename T>
std::vector<std::vector<T>> Values(size_t ranks, size_t count) {
  PhiloxStream random(PhiloxKey(ranks * 1000 + count, "values"));
  std::vector<std::vector<T>> values(ranks, std::vector<T>(count));
  for (auto& rank : values) {
    for (T& value : rank) {
      value = std::is_integral_v<T>
                  ? static_cast<T>(random.Next())
                  : static_cast<T>(std::ldexp(random.Uniform() - 0.5, random.Next() % 40));
    }
  }
  return values;
}

template <typename T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T, typename F>
void CompareWithTree(Reduction reduction, F combine) {
  for (const size_t ranks : {1, 2, 3, 4, 5, 6, 7, 8, 11, 17, 33}) {
    for (const size_t count : {0, 3, 1025}) {
      std::vector<std::vector<T>> values = Values<T>(ranks, count);
      std::vector<T> expected(count);
      for (size_t i = 0; i < count; ++i) expected[i] = TreeOf(values, 0, ranks, i, combine);
      std::vector<std::span<const std::byte>> spans;
      for (const auto& value : values) spans.push_back(Bytes(value));
      std::vector<T> apart(count);
      CombineAll(DTypeOf<T>::value, reduction, std::as_writable_bytes(std::span(apart)), spans);
      EXPECT_EQ(apart, expected) << ranks << " ranks, " << count << " elements";
      std::vector<T>& in_place = values[ranks / 2];
      CombineAll(DTypeOf<T>::value, reduction, std::as_writable_bytes(std::span(in_place)), spans);
      EXPECT_EQ(in_place, expected) << ranks << " ranks, " << count << " elements, in place";
    }
  }
}

template <typename T>
T Wrap(T a, T b) {
  T sum;
  (void)__builtin_add_overflow(a, b, &sum);
  return sum;
}

TEST(Reduction, SumsInTheOrderOfTheTree) {
  CompareWithTree<float>(Reduction::kSum, [](float a, float b) { return a + b; });
  CompareWithTree<double>(Reduction::kSum, [](double a, double b) { return a + b; });
  CompareWithTree<int32_t>(Reduction::kSum, Wrap<int32_t>);
  CompareWithTree<int64_t>(Reduction::kSum, Wrap<int64_t>);
}

TEST(Reduction, FindsMinimaAndMaxima) {
  CompareWithTree<float>(Reduction::kMinimum, [](float a, float b) { return a < b ? a : b; });
  CompareWithTree<double>(Reduction::kMaximum, [](double a, double b) { return a > b ? a : b; });
  CompareWithTree<int32_t>(Reduction::kMaximum, [](int32_t a, int32_t b) { return a > b ? a : b; });
  CompareWithTree<int64_t>(Reduction::kMinimum, [](int64_t a, int64_t b) { return a < b ? a : b; });
}

TEST(Reduction, NanIsNeitherSmallerNorLarger) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> left{nan, 1, nan, 2}, right{1, nan, nan, 3};
  for (const Reduction reduction : {Reduction::kMinimum, Reduction::kMaximum}) {
    std::vector<float> result(4);
    Combine(DType::kFloat32, reduction, std::as_writable_bytes(std::span(result)), Bytes(left),
            Bytes(right));
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]) && std::isnan(result[2]));
    EXPECT_EQ(result[3], reduction == Reduction::kMinimum ? 2 : 3);
  }
}

TEST(Reduction, ThreeRanksAreNotSummedFromTheRight) {
  // In float32, −1e8 + 1 rounds to −1e8, so a + (b + c) would be 0.
  const std::vector<float> a{1e8f}, b{-1e8f}, c{1.f};
  std::vector<float> result(1);
  const std::vector<std::span<const std::byte>> values{Bytes(a), Bytes(b), Bytes(c)};
  CombineAll(DType::kFloat32, Reduction::kSum, std::as_writable_bytes(std::span(result)), values);
  EXPECT_EQ(result[0], 1.f);
}

TEST(Reduction, TheTreeDividesAtPowersOfTwo) {
  EXPECT_EQ(TreeMiddle(0, 2), 1);
  EXPECT_EQ(TreeMiddle(0, 3), 2);
  EXPECT_EQ(TreeMiddle(0, 4), 2);
  EXPECT_EQ(TreeMiddle(0, 5), 4);
  EXPECT_EQ(TreeMiddle(4, 7), 6);
  EXPECT_EQ(TreeMiddle(0, 17), 16);
}

// The ten-line definition of a sum of 16-bit values: the tree in float32, rounded once.
template <typename Half>
float HalfTree(const std::vector<std::vector<Half>>& ranks, size_t first, size_t last, size_t at) {
  if (last - first == 1) return static_cast<float>(ranks[first][at]);
  size_t half = 1;
  while (2 * half < last - first) half *= 2;
  return HalfTree(ranks, first, first + half, at) + HalfTree(ranks, first + half, last, at);
}

template <typename Half>
std::vector<uint16_t> BitsOf(const std::vector<Half>& values) {
  std::vector<uint16_t> bits;
  for (const Half value : values) bits.push_back(value.bits);
  return bits;
}

template <typename Half>
void CompareHalves() {
  for (const size_t ranks : {1, 2, 3, 4, 5, 7, 8, 17}) {
    for (const size_t count : {0, 3, 1025, 3000}) {
      std::vector<std::vector<Half>> values(ranks, std::vector<Half>(count));
      PhiloxStream random(PhiloxKey(ranks * 1000 + count, "halves"));
      for (auto& rank : values) {
        for (Half& value : rank)
          value = Half(std::ldexp(static_cast<float>(random.Uniform()) - 0.5F, random.Next() % 12));
      }
      std::vector<Half> sums, means;
      for (size_t i = 0; i < count; ++i) {
        const float tree = HalfTree(values, 0, ranks, i);
        sums.emplace_back(tree);
        means.emplace_back(tree / static_cast<float>(ranks));
      }
      std::vector<std::span<const std::byte>> spans;
      for (const auto& value : values) spans.push_back(Bytes(value));
      std::vector<Half> apart(count);
      CombineAll(DTypeOf<Half>::value, Reduction::kMean, std::as_writable_bytes(std::span(apart)),
                 spans);
      EXPECT_EQ(BitsOf(apart), BitsOf(means)) << ranks << " ranks, " << count << " elements";
      std::vector<Half>& in_place = values[ranks / 2];
      CombineAll(DTypeOf<Half>::value, Reduction::kSum, std::as_writable_bytes(std::span(in_place)),
                 spans);
      EXPECT_EQ(BitsOf(in_place), BitsOf(sums)) << ranks << " ranks, in place";
    }
  }
}

TEST(Reduction, HalvesAreSummedInFloat32AndRoundedOnce) {
  CompareHalves<BFloat16>();
  CompareHalves<Float16>();
  // With a rounding after each addition, 256 + 1 would be 256 in bfloat16.
  std::vector<BFloat16> a{BFloat16(256.F)}, b{BFloat16(1.F)}, c{BFloat16(1.F)}, sum(1);
  const std::vector<std::span<const std::byte>> values{Bytes(a), Bytes(b), Bytes(c)};
  CombineAll(DType::kBFloat16, Reduction::kSum, std::as_writable_bytes(std::span(sum)), values);
  EXPECT_EQ(static_cast<float>(sum[0]), 258.F);
}

TEST(Reduction, AMeanIsTheSumDividedOnce) {
  const std::vector<float> a{1e8F}, b{-1e8F}, c{1.F};
  const std::vector<std::span<const std::byte>> values{Bytes(a), Bytes(b), Bytes(c)};
  std::vector<float> mean(1), sum(1);
  CombineAll(DType::kFloat32, Reduction::kMean, std::as_writable_bytes(std::span(mean)), values);
  EXPECT_EQ(mean[0], 1.F / 3);
  CombineAll(DType::kFloat32, Reduction::kSum, std::as_writable_bytes(std::span(sum)), values);
  DivideByRanks(DType::kFloat32, std::as_writable_bytes(std::span(sum)), 3);
  EXPECT_EQ(sum, mean);
}

TEST(Reduction, OnlyNumbersThatAddCanBeReduced) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16,
                            DType::kInt32, DType::kInt64}) {
    EXPECT_EQ(CheckReduction("AllReduce", dtype, Reduction::kSum), OkStatus()) << Name(dtype);
    const bool integer = dtype == DType::kInt32 || dtype == DType::kInt64;
    EXPECT_EQ(CheckReduction("AllReduce", dtype, Reduction::kMean).ok(), !integer) << Name(dtype);
  }
  EXPECT_EQ(Message(CheckReduction("Reduce", DType::kInt32, Reduction::kMean)),
            "Reduce of int32: integers have no mean; use sum, and divide the result");
  EXPECT_FALSE(CheckReduction("AllReduce", DType::kUInt8, Reduction::kSum).ok());
  EXPECT_FALSE(CheckReduction("AllReduce", DType::kBool, Reduction::kMaximum).ok());
}

TEST(SliceOf, TheFirstSlicesAreLargerByOne) {
  EXPECT_EQ(SliceOf(7, 0, 3), (Slice{0, 3}));
  EXPECT_EQ(SliceOf(7, 1, 3), (Slice{3, 2}));
  EXPECT_EQ(SliceOf(7, 2, 3), (Slice{5, 2}));
  EXPECT_EQ(SliceOf(1, 2, 3), (Slice{1, 0}));
  EXPECT_EQ(SliceOf(0, 0, 1), (Slice{0, 0}));
  int64_t next = 0;
  for (int rank = 0; rank < 17; ++rank) {
    const Slice slice = SliceOf(1'000'003, rank, 17);
    EXPECT_EQ(slice.begin, next);
    next += slice.count;
  }
  EXPECT_EQ(next, 1'000'003);
}

}  // namespace
}  // namespace tfjob::collectives
