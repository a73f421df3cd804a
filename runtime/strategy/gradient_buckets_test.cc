#include "runtime/strategy/gradient_buckets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "runtime/base/philox.h"
#include "runtime/strategy/test_group.h"
#include "runtime/tensor/half.h"

namespace tfjob::strategy {
namespace {

constexpr int64_t kElements = 1000;
enum Variable : int { kDense, kStatistic, kPrecise, kBias, kVariables };

// A step with a float32 gradient, a moving statistic, a float64 gradient and a small gradient.
BucketPlan PlanOf(config::Compression compression) {
  const bool compressed = compression == config::Compression::kBFloat16;
  return PlanBuckets({{.variable = kStatistic, .gradient = false, .elements = kElements},
                      {.variable = kBias, .compressed = compressed, .elements = 3},
                      {.variable = kDense, .compressed = compressed, .elements = kElements},
                      {.variable = kPrecise, .dtype = DType::kFloat64, .elements = kElements}},
                     0);
}

float ValueOf(int rank, int variable, int64_t i) {
  PhiloxStream random(PhiloxKey(static_cast<uint64_t>(rank * kVariables + variable), "values"));
  for (int64_t skipped = i % 7; skipped > 0; --skipped) random.Next();
  return std::ldexp(static_cast<float>(random.Uniform()) - 0.5F, static_cast<int>(i % 12)) +
         static_cast<float>(i) / 1024;
}

template <typename T>
std::vector<T> ValuesOf(int rank, int variable, int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(ValueOf(rank, variable, i));
  return values;
}

// Counts the bytes of this rank's AllReduce operations by type.
class CountingCommunicator : public MeetingCommunicator {
 public:
  using MeetingCommunicator::MeetingCommunicator;
  Status AllReduce(std::span<std::byte> values, DType dtype,
                   collectives::Reduction reduction) override {
    bytes[dtype] += values.size();
    return MeetingCommunicator::AllReduce(values, dtype, reduction);
  }
  std::map<DType, size_t> bytes;
};

struct Result {
  std::map<DType, size_t> bytes;
  std::vector<float> dense, statistic, bias;
  std::vector<double> precise;
  std::vector<double> totals;
};

template <typename T>
std::vector<T> ReducedAs(const GradientBuckets& buckets, int variable) {
  const std::span<const std::byte> bytes = buckets.Reduced(variable);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Where contributions are computed: in the memory of the buckets, as programs do, or elsewhere,
// from where they are copied.
enum class Place { kBuckets, kElsewhere };

// Reduces a step of `ranks` ranks twice, and returns each rank's results of the second time. The
// last rank has no examples.
std::vector<Result> Reduce(size_t ranks, config::Compression compression,
                           Place place = Place::kBuckets) {
  std::vector<Result> results(ranks);
  OnEveryRank<CountingCommunicator>(ranks, [&](int rank, CountingCommunicator& communicator) {
    GradientBuckets buckets(PlanOf(compression), kVariables, 1);
    ASSERT_TRUE(buckets.Connect(communicator).ok());
    Result& result = results[static_cast<size_t>(rank)];
    for (int step = 0; step < 2; ++step) {
      communicator.bytes.clear();
      buckets.Begin({.gradient = 0.3, .assign = 0.5});
      const auto add = [&]<typename T>(int variable, const std::vector<T>& values) {
        const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
        if (place == Place::kElsewhere) return buckets.Add(variable, bytes);
        const std::span<std::byte> memory = buckets.MemoryOf(variable);
        ASSERT_EQ(memory.size(), bytes.size());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kBucketAlignment, 0U);
        std::ranges::copy(bytes, memory.begin());
        buckets.Add(variable, memory);
      };
      if (rank + 1 == static_cast<int>(ranks)) {
        buckets.AddZeros();
      } else {
        add(kDense, ValuesOf<float>(rank, kDense, kElements));
        add(kStatistic, ValuesOf<float>(rank, kStatistic, kElements));
        add(kPrecise, ValuesOf<double>(rank, kPrecise, kElements));
        add(kBias, ValuesOf<float>(rank, kBias, 3));
      }
      result.totals = {1 + 1e-12};
      ASSERT_EQ(buckets.Finish(result.totals), OkStatus());
    }
    result.bytes = communicator.bytes;
    result.dense = ReducedAs<float>(buckets, kDense);
    result.statistic = ReducedAs<float>(buckets, kStatistic);
    result.bias = ReducedAs<float>(buckets, kBias);
    result.precise = ReducedAs<double>(buckets, kPrecise);
  });
  return results;
}

// Returns the tree sum over the ranks [first, last) of what they send: the scaled value, rounded to
// bfloat16. The rank `empty` sends zeros.
float TreeOf(int first, int last, int empty, int variable, int64_t i) {
  if (last - first == 1) {
    if (first == empty) return 0;
    return static_cast<float>(BFloat16(ValueOf(first, variable, i) * 0.3F));
  }
  int half = 1;
  while (2 * half < last - first) half *= 2;
  return TreeOf(first, first + half, empty, variable, i) +
         TreeOf(first + half, last, empty, variable, i);
}

TEST(GradientBuckets, CompressedGradientsAreRoundedOnceOnEachSideOfAFloat32Sum) {
  for (const int ranks : {1, 2, 3, 5}) {
    const auto results = Reduce(static_cast<size_t>(ranks), config::Compression::kBFloat16);
    for (const Result& result : results) {
      ASSERT_EQ(result.dense.size(), static_cast<size_t>(kElements));
      for (int64_t i = 0; i < kElements; ++i) {
        const auto expected = static_cast<float>(BFloat16(TreeOf(0, ranks, ranks - 1, kDense, i)));
        ASSERT_EQ(result.dense[static_cast<size_t>(i)], expected) << ranks << " ranks, " << i;
      }
      ASSERT_EQ(result.bias.size(), 3U);
      for (int64_t i = 0; i < 3; ++i) {
        const auto expected = static_cast<float>(BFloat16(TreeOf(0, ranks, ranks - 1, kBias, i)));
        EXPECT_EQ(result.bias[static_cast<size_t>(i)], expected) << ranks << " ranks, " << i;
      }
    }
  }
}

TEST(GradientBuckets, ContributionsMayBeComputedInTheBuckets) {
  for (const auto compression : {config::Compression::kNone, config::Compression::kBFloat16}) {
    const Result in_place = Reduce(3, compression, Place::kBuckets)[0];
    const Result copied = Reduce(3, compression, Place::kElsewhere)[0];
    EXPECT_EQ(in_place.dense, copied.dense);
    EXPECT_EQ(in_place.statistic, copied.statistic);
    EXPECT_EQ(in_place.bias, copied.bias);
    EXPECT_EQ(in_place.precise, copied.precise);
    const float expected = 0.5F * ValueOf(0, kStatistic, 3) + 0.5F * ValueOf(1, kStatistic, 3);
    EXPECT_EQ(in_place.statistic[3], expected);
  }
}

// In the second step, one of the ranks contributes a number that is not finite. All ranks find it
// in the sum, and in the next step all numbers are finite again. 3.4e38 is finite in float32, but
// not after it has been rounded to bfloat16.
TEST(GradientBuckets, FindsTheContributionsThatAreNotFinite) {
  for (const auto compression : {config::Compression::kNone, config::Compression::kBFloat16}) {
    OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
      GradientBuckets buckets(PlanOf(compression), kVariables, 0, /*checks_numbers=*/true);
      ASSERT_TRUE(buckets.Connect(communicator).ok());
      for (int step = 0; step < 3; ++step) {
        buckets.Begin({});
        std::vector<float> dense(kElements), statistic(kElements), bias(3);
        std::vector<double> precise(kElements);
        if (step == 1 && rank == 1) {
          dense[kElements - 1] = 3.4e38F;
          bias[1] = NAN;
          precise[5] = -INFINITY;
        }
        buckets.Add(kDense, std::as_bytes(std::span(dense)));
        buckets.Add(kStatistic, std::as_bytes(std::span(statistic)));
        buckets.Add(kPrecise, std::as_bytes(std::span(precise)));
        buckets.Add(kBias, std::as_bytes(std::span(bias)));
        ASSERT_EQ(buckets.Finish({}), OkStatus());
        EXPECT_EQ(buckets.Finite(kDense), step != 1 || compression == config::Compression::kNone);
        EXPECT_TRUE(buckets.Finite(kStatistic));
        EXPECT_EQ(buckets.Finite(kPrecise), step != 1);
        EXPECT_EQ(buckets.Finite(kBias), step != 1);
      }
    });
  }
}

TEST(GradientBuckets, CompressionHalvesTheBytesOfFloat32GradientsOnly) {
  const Result plain = Reduce(3, config::Compression::kNone)[0];
  const Result compressed = Reduce(3, config::Compression::kBFloat16)[0];
  const auto padded = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const size_t statistic = padded(kElements * 4);
  EXPECT_EQ(plain.bytes.at(DType::kFloat32), statistic + padded(kElements * 4) + padded(3 * 4));
  EXPECT_EQ(plain.bytes.count(DType::kBFloat16), 0U);
  EXPECT_EQ(compressed.bytes.at(DType::kFloat32), statistic);
  EXPECT_EQ(compressed.bytes.at(DType::kBFloat16), padded(kElements * 2) + padded(3 * 2));
  EXPECT_EQ(compressed.bytes.at(DType::kFloat64), plain.bytes.at(DType::kFloat64));
  EXPECT_EQ(compressed.statistic, plain.statistic);
  EXPECT_EQ(compressed.precise, plain.precise);
  EXPECT_EQ(compressed.totals, plain.totals);
  EXPECT_NE(compressed.dense, plain.dense);
}

}  // namespace
}  // namespace tfjob::strategy
