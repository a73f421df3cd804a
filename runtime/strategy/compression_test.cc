// Tests tasks that send bfloat16 gradients to each other, and tasks whose settings of the exchange
// differ. The tasks are threads.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "runtime/strategy/test_tasks.h"

namespace tfjob::strategy {
namespace {

// Trains for `steps` steps, and returns the loss of each step and all tasks' states.
struct Course {
  std::vector<double> losses;
  std::vector<std::vector<float>> states;
};
Course Train(int tasks, config::Compression compression, int64_t steps) {
  Course course;
  course.states.resize(static_cast<size_t>(tasks));
  TestJob job(tasks);
  OnThreads(tasks, [&](int rank) {
    Task task;
    Create(job, tasks, rank, task, 0,
           [&](auto& options) { options.common.compression = compression; });
    StepOutcome outcome = *task.strategy->Start();
    while (outcome.global_step < steps) {
      MetricTotals totals;
      outcome = *task.strategy->Step(BatchOf(outcome.drawn, rank, tasks), totals);
      if (rank == 0) course.losses.push_back(totals.loss());
    }
    course.states[static_cast<size_t>(rank)] =
        ValuesOf(*task.strategy->TakeSnapshot(), Slots::kWith);
  });
  return course;
}

constexpr ptrdiff_t kAveraged = 20;

double MeanOfTheFirst(const std::vector<double>& losses) {
  return std::accumulate(losses.begin(), losses.begin() + kAveraged, 0.0) / kAveraged;
}
double MeanOfTheLast(const std::vector<double>& losses) {
  return std::accumulate(losses.end() - kAveraged, losses.end(), 0.0) / kAveraged;
}

// Both runs reduce the loss to less than a third. With bfloat16, the last losses differ by at
// most 5 %.
TEST(Compression, TasksThatSendBFloat16LearnAndStayEqual) {
  constexpr int64_t kSteps = 400;
  const Course exact = Train(2, config::Compression::kNone, kSteps);
  const Course rounded = Train(2, config::Compression::kBFloat16, kSteps);
  EXPECT_EQ(rounded.states[0], rounded.states[1]);
  EXPECT_NE(rounded.states[0], exact.states[0]);
  EXPECT_LT(MeanOfTheLast(exact.losses), MeanOfTheFirst(exact.losses) / 3);
  EXPECT_LT(MeanOfTheLast(rounded.losses), MeanOfTheFirst(rounded.losses) / 3);
  EXPECT_NEAR(MeanOfTheLast(rounded.losses), MeanOfTheLast(exact.losses),
              0.05 * MeanOfTheLast(exact.losses));
}

// Expects a group of two tasks to refuse one of them after `change` on task 1.
void ExpectToRefuse(const Change& change) {
  TestJob job(2);
  std::atomic<int> refused = 0;
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, 0, rank == 1 ? change : Change());
    const Status started = task.strategy->Start().status();
    if (absl::IsFailedPrecondition(started)) {
      refused++;
      EXPECT_TRUE(job.GroupOf(rank)->Finish().ok());
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(started) || absl::IsCancelled(started)) << started;
  });
  EXPECT_EQ(refused, 1);
}

TEST(Compression, RefusesATaskThatSendsAnotherType) {
  ExpectToRefuse(
      [](auto& options) { options.common.compression = config::Compression::kBFloat16; });
}

TEST(Ring, RefusesATaskThatAddsInAnotherOrder) {
  ExpectToRefuse(
      [](auto& options) { options.implementation = config::CollectiveImplementation::kRing; });
}

}  // namespace
}  // namespace tfjob::strategy
