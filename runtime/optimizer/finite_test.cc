#include "runtime/optimizer/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tfjob::optimizer {
namespace {

template <typename T>
void FindsEveryOddValueAtEveryPlace() {
  using Limits = std::numeric_limits<T>;
  for (size_t size : {1u, 7u, 8u, 33u, 100u}) {
    std::vector<T> values(size, Limits::max());
    values[0] = -Limits::max();
    if (size > 2) values[1] = Limits::denorm_min();
    EXPECT_TRUE(AllFinite(std::span<const T>(values))) << size;
    for (size_t i = 0; i < size; ++i) {
      const T before = values[i];
      for (T odd : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                    -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
        values[i] = odd;
        EXPECT_FALSE(AllFinite(std::span<const T>(values))) << size << " at " << i << ": " << odd;
      }
      values[i] = before;
    }
  }
  EXPECT_TRUE(AllFinite(std::span<const T>()));
}

TEST(AllFinite, FindsEveryOddValueAtEveryPlace) {
  FindsEveryOddValueAtEveryPlace<float>();
  FindsEveryOddValueAtEveryPlace<double>();
}

TEST(AllFinite, SharesTheWorkWithThePool) {
  ThreadPool pool("finite", 3);
  std::vector<float> values(1 << 19, 1.0f);
  EXPECT_TRUE(AllFinite(std::span<const float>(values), &pool));
  for (size_t i : {size_t{0}, values.size() / 2, values.size() - 1}) {
    values[i] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(AllFinite(std::span<const float>(values), &pool)) << i;
    values[i] = 1;
  }
}

}  // namespace
}  // namespace tfjob::optimizer
