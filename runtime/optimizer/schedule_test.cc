#include "runtime/optimizer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/optimizer/optimizer.h"

namespace tfjob::optimizer {
namespace {

std::vector<double> Rates(const Schedule& schedule, int64_t steps) {
  std::vector<double> rates;
  for (int64_t step = 0; step < steps; ++step) rates.push_back(RateAt(schedule, 1, step));
  return rates;
}

void ExpectRates(const Schedule& schedule, const std::vector<double>& expected) {
  const auto rates = Rates(schedule, static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12) << i;
}

TEST(ScheduleTest, IsConstantWithoutDecay) {
  ExpectRates({}, {1, 1, 1});
}

TEST(ScheduleTest, FollowsItsFormula) {
  ExpectRates({.decay = Decay::kExponential, .decay_steps = 2, .decay_rate = 0.25},
              {1, 0.5, 0.25, 0.125});
  ExpectRates(
      {.decay = Decay::kExponential, .decay_steps = 2, .decay_rate = 0.25, .staircase = true},
      {1, 1, 0.25, 0.25, 0.0625});
  ExpectRates({.decay = Decay::kInverseTime, .decay_steps = 1, .decay_rate = 1}, {1, 0.5, 1.0 / 3});
  ExpectRates({.decay = Decay::kPolynomial, .decay_steps = 4, .end_learning_rate = 0.2},
              {1, 0.8, 0.6, 0.4, 0.2, 0.2});
  ExpectRates(
      {.decay = Decay::kPolynomial, .decay_steps = 2, .end_learning_rate = 0, .cycle = true},
      {1, 0.5, 0, 0.25, 0});
  ExpectRates({.decay = Decay::kCosine, .decay_steps = 2, .alpha = 0.2}, {1, 0.6, 0.2, 0.2});
  ExpectRates({.decay = Decay::kCosine, .decay_steps = 2, .warmup_target = 3, .warmup_steps = 2},
              {1, 2, 3, 1.5, 0, 0});
  ExpectRates({.decay = Decay::kCosineRestarts, .decay_steps = 2, .t_mul = 1, .m_mul = 0.5},
              {1, 0.5, 0.5, 0.25, 0.25});
  ExpectRates({.decay = Decay::kCosineRestarts, .decay_steps = 1, .alpha = 0.1},
              {1, 1, 0.55, 1, 0.55 + 0.45 * std::sqrt(0.5), 0.55, 0.55 - 0.45 * std::sqrt(0.5), 1});
  ExpectRates({.decay = Decay::kPiecewiseConstant, .boundaries = {1, 3}, .values = {0.5, 0.2, 0.1}},
              {0.5, 0.5, 0.2, 0.2, 0.1});
}

TEST(ScheduleTest, RefusesWhatHasNoMeaning) {
  EXPECT_FALSE(Validate({.decay = Decay::kCosine}).ok());                         // no decay_steps
  EXPECT_FALSE(Validate({.decay = Decay::kExponential, .decay_steps = 5}).ok());  // no rate
  EXPECT_FALSE(Validate({.decay = Decay::kCosine, .decay_steps = 5, .alpha = 2}).ok());
  EXPECT_FALSE(Validate({.decay = Decay::kCosineRestarts, .decay_steps = 5, .t_mul = 0.9}).ok());
  EXPECT_TRUE(Validate({.decay = Decay::kCosine, .decay_steps = 5}).ok());
  EXPECT_FALSE(Validate({.decay = Decay::kCosine, .decay_steps = 5, .boundaries = {2}}).ok());
  EXPECT_FALSE(Validate({.decay = Decay::kCosine, .decay_steps = 5, .values = {1}}).ok());
  EXPECT_FALSE(Validate({.values = {1}}).ok());
  EXPECT_FALSE(
      Validate({.decay = Decay::kPiecewiseConstant, .boundaries = {2}, .values = {1}}).ok());
  EXPECT_FALSE(
      Validate({.decay = Decay::kPiecewiseConstant, .boundaries = {2, 2}, .values = {1, 1, 1}})
          .ok());
  EXPECT_TRUE(
      Validate({.decay = Decay::kPiecewiseConstant, .boundaries = {2, 3}, .values = {1, 1, 1}})
          .ok());
}

TEST(ScheduleTest, TravelsWithTheOptimizer) {
  Optimizer optimizer = Optimizer::Default(Kind::kAdam);
  optimizer.schedule = {
      .decay = Decay::kPiecewiseConstant, .boundaries = {2}, .values = {0.5, 0.1}};
  const auto read = FromAttributes(ToAttributes(optimizer));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, optimizer);
}

}  // namespace
}  // namespace tfjob::optimizer
