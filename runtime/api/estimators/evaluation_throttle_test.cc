// Tests which checkpoints are evaluated.
#include "runtime/api/estimators/evaluation_throttle.h"

#include <gtest/gtest.h>

#include <vector>

namespace tfjob::api {
namespace {

// Returns the steps that are evaluated if there is a checkpoint at every step from 0 to `last`, one
// per second, and an evaluation takes no time.
std::vector<int64_t> Evaluated(Duration throttle, int64_t last) {
  EvaluationThrottle schedule(throttle);
  std::vector<int64_t> steps;
  const auto evaluate = [&](int64_t step, Duration now) {
    schedule.Began(now);
    schedule.Evaluated(step);
    steps.push_back(step);
  };
  schedule.Start(0);
  for (int64_t step = 0; step <= last; ++step) {
    const Duration now = 100s + std::chrono::seconds(step);
    if (schedule.Wants(step, now)) evaluate(step, now);
  }
  if (schedule.WantsLast(last)) evaluate(last, 100s + std::chrono::seconds(last));
  return steps;
}

TEST(EvaluationThrottle, EvaluatesEachCheckpointUnlessItIsTooSoon) {
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(Evaluated(0s, 4), (Steps{1, 2, 3, 4}));
  EXPECT_EQ(Evaluated(3s, 8), (Steps{1, 4, 7, 8}));
  EXPECT_EQ(Evaluated(3s, 7), (Steps{1, 4, 7})) << "the last step is evaluated once";
  EXPECT_EQ(Evaluated(1000s, 8), (Steps{1, 8}));
}

TEST(EvaluationThrottle, DoesNotEvaluateTheCheckpointFromWhichARunGoesOn) {
  EvaluationThrottle schedule(10s);
  schedule.Start(5);
  EXPECT_FALSE(schedule.Wants(5, 100s));
  EXPECT_TRUE(schedule.Wants(6, 100s));
  schedule.Began(100s);
  schedule.Evaluated(6);
  schedule.Start(6);
  EXPECT_FALSE(schedule.Wants(7, 109s)) << "an interruption does not shorten the time";
  EXPECT_TRUE(schedule.Wants(7, 110s));
}

TEST(EvaluationThrottle, TriesAgainAfterAnEvaluationThatWasStopped) {
  EvaluationThrottle schedule(10s);
  schedule.Began(100s);
  EXPECT_TRUE(schedule.WantsLast(3));
}

}  // namespace
}  // namespace tfjob::api
