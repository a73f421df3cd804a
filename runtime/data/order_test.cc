#include "runtime/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tfjob::data {
namespace {

std::vector<int64_t> Values(Order& order, int64_t epoch, int64_t size) {
  order.Begin(epoch);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(order.At(i));
  return values;
}

std::vector<int64_t> Numbers(int64_t size) {
  std::vector<int64_t> numbers(static_cast<size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Order, EachKindTakesEveryExampleOnce) {
  for (const Order::Kind kind :
       {Order::Kind::kFiles, Order::Kind::kList, Order::Kind::kPermutation}) {
    for (const int64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 1000, 4096, 65537}) {
      Order order(kind, 7, size);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int64_t> values = Values(order, epoch, size);
        std::sort(values.begin(), values.end());
        EXPECT_EQ(values, Numbers(size)) << static_cast<int>(kind) << " " << epoch;
      }
    }
  }
}

TEST(Order, ShufflesWithinWindows) {
  for (const int64_t window : {1, 2, 7, 100, 1000}) {
    for (const int64_t size : {1, 6, 7, 8, 500}) {
      Order order(Order::Kind::kWindows, 7, size, window);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int64_t> values = Values(order, epoch, size);
        for (int64_t place = 0; place < size; ++place)
          EXPECT_LT(std::abs(values[static_cast<size_t>(place)] - place), window);
        std::sort(values.begin(), values.end());
        EXPECT_EQ(values, Numbers(size)) << window << " " << epoch;
      }
    }
  }
}

TEST(Order, WindowsCanBeReadInAnyOrder) {
  Order order(Order::Kind::kWindows, 7, 300, 20), backwards(Order::Kind::kWindows, 7, 300, 20);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const std::vector<int64_t> values = Values(order, epoch, 300);
    backwards.Begin(epoch);
    for (int64_t place = 299; place >= 0; --place)
      EXPECT_EQ(backwards.At(place), values[static_cast<size_t>(place)]);
  }
  EXPECT_NE(Values(order, 0, 300), Values(order, 1, 300));
  EXPECT_NE(Values(order, 0, 300), Numbers(300));
}

TEST(Order, FollowsTheFiles) {
  Order order(Order::Kind::kFiles, 7, 5);
  EXPECT_EQ(Values(order, 3, 5), Numbers(5));
}

// These orders must never change: see order.h.
TEST(Order, StaysTheSameInAllVersions) {
  Order list(Order::Kind::kList, 5, 8);
  EXPECT_EQ(Values(list, 0, 8), (std::vector<int64_t>{4, 0, 7, 3, 5, 2, 1, 6}));
  EXPECT_EQ(Values(list, 1, 8), (std::vector<int64_t>{7, 4, 5, 0, 6, 1, 3, 2}));
  Order permutation(Order::Kind::kPermutation, 5, int64_t{1} << 40);
  EXPECT_EQ(Values(permutation, 0, 4),
            (std::vector<int64_t>{476475496166, 443920406770, 964851115931, 269122943254}));
  EXPECT_EQ(Values(permutation, 1, 4),
            (std::vector<int64_t>{218281829840, 73071964472, 862376349021, 961362692326}));
}

TEST(Order, DependsOnTheSeedAndTheEpoch) {
  for (const Order::Kind kind : {Order::Kind::kList, Order::Kind::kPermutation}) {
    Order order(kind, 1, 2000), same(kind, 1, 2000), other(kind, 2, 2000);
    const auto first = Values(order, 0, 2000);
    const auto second = Values(order, 1, 2000);
    EXPECT_NE(first, second);
    EXPECT_NE(first, Values(other, 0, 2000));
    EXPECT_EQ(second, Values(same, 1, 2000));
    EXPECT_EQ(first, Values(order, 0, 2000)) << "an earlier epoch again";
  }
}

// Returns the correlation of two sequences of numbers.
double Correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xy / std::sqrt(xx * yy);
}

TEST(KeyedPermutation, LooksRandom) {
  constexpr int64_t kSize = 3'000'000;
  for (const uint64_t key : {1, 2, 3}) {
    const KeyedPermutation permutation(key, kSize);
    std::vector<double> places, values, next;
    std::vector<int> in_bucket(100);
    for (int64_t i = 0; i < 100'000; ++i) {
      const int64_t value = permutation.At(i);
      places.push_back(static_cast<double>(i));
      values.push_back(static_cast<double>(value));
      next.push_back(static_cast<double>(permutation.At(i + 1)));
      ++in_bucket[static_cast<size_t>(value * 100 / kSize)];
    }
    // A random permutation has correlations of about 1 / sqrt(100000) = 0.003.
    EXPECT_LT(std::fabs(Correlation(places, values)), 0.02);
    EXPECT_LT(std::fabs(Correlation(values, next)), 0.02);
    double chi = 0;
    for (const int count : in_bucket) chi += (count - 1000.0) * (count - 1000.0) / 1000;
    EXPECT_LT(chi, 180) << "99 degrees of freedom: above 180 once in a million";
  }
}

TEST(KeyedPermutation, TakesTheLargestSize) {
  const KeyedPermutation permutation(1, int64_t{1} << 62);
  EXPECT_GE(permutation.At((int64_t{1} << 62) - 1), 0);
  EXPECT_NE(permutation.At(0), permutation.At(1));
}

}  // namespace
}  // namespace tfjob::data
