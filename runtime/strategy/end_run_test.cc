// Tests how a task of an all-reduce job ends the run for all tasks (Strategy::EndRun), and changes
// the learning rate of all tasks (Strategy::SetLearningRate).
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "runtime/strategy/test_tasks.h"

namespace tfjob::strategy {
namespace {

// Trains until a task ends the run. This task ends it at the step `end`, unless that is kNone.
StatusOr<StepOutcome> TrainUntilEnd(Task& task, int ranks, int64_t end, MetricTotals& totals) {
  ASSIGN_OR_RETURN(StepOutcome outcome, task.strategy->Start());
  while (!outcome.run_ended) {
    if (outcome.global_step == end) {
      ASSIGN_OR_RETURN(outcome, task.strategy->EndRun());
    } else {
      const data::Batch batch = BatchOf(outcome.drawn, task.rank, ranks);
      ASSIGN_OR_RETURN(outcome, task.strategy->Step(batch, totals));
    }
  }
  return outcome;
}

// Ends the job in the leader, and leaves.
void FinishAndLeave(Task& task) {
  if (task.rank == 0) {
    EXPECT_TRUE(task.strategy->Finish().ok());
  }
  EXPECT_TRUE(task.strategy->Leave().ok());
}

TEST(EndRun, ATaskThatEndsTheRunEndsItForAll) {
  constexpr int kRanks = 3;
  for (int ending = 0; ending < kRanks; ++ending) {
    TestJob job(kRanks);
    std::vector<std::vector<float>> states(kRanks);
    OnThreads(kRanks, [&](int rank) {
      Task task;
      Create(job, kRanks, rank, task, /*last_step=*/9);
      MetricTotals totals;
      const auto end = TrainUntilEnd(task, kRanks, rank == ending ? 4 : kNone, totals);
      ASSERT_TRUE(end.ok()) << end.status();
      EXPECT_EQ(end->global_step, 4);
      EXPECT_EQ(totals.examples, 4 * kGlobalBatch);
      states[static_cast<size_t>(rank)] = ValuesOf(*task.strategy->TakeSnapshot(), Slots::kWith);
      FinishAndLeave(task);
    });
    for (const std::vector<float>& state : states) EXPECT_EQ(state, states[0]);
  }
}

// The replacement knows only the planned last step. It must learn from the other task that the run
// has ended.
TEST(EndRun, AReplacedLeaderLearnsThatTheRunHasEnded) {
  TestJob job(2);
  OnThreads(2, [&](int rank) {
    MetricTotals totals;
    if (rank == 0) {
      Task lost;
      Create(job, 2, rank, lost, /*last_step=*/9);
      EXPECT_TRUE(TrainUntilEnd(lost, 2, kNone, totals).ok());
    }
    Task task;
    Create(job, 2, rank, task, /*last_step=*/9);
    const auto end = TrainUntilEnd(task, 2, rank == 1 ? 4 : kNone, totals);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->global_step, 4);
    EXPECT_FALSE(task.provided);
    FinishAndLeave(task);
  });
}

// Sharing the state takes 15 operations and a barrier, and the 2 steps take 6 operations. They are
// followed by the announcements that end the run, and a barrier.
TEST(EndRun, AFaultWhileTheRunEndsLeavesNoTaskBehind) {
  for (int variant = 0; variant < 8; ++variant) {
    const int64_t operation = 23 + variant % 2;
    const int on = variant / 2 % 2, ending = variant / 4;
    bool occurred = false;
    TestJob job(2, [&](int64_t generation) -> Meeting::Fault {
      if (generation > 1) return {};
      return [&](int64_t at, int rank) {
        const bool fails = at == operation && rank == on;
        occurred = occurred || fails;
        return fails;
      };
    });
    OnThreads(2, [&](int rank) {
      Task task;
      Create(job, 2, rank, task, /*last_step=*/9);
      MetricTotals totals;
      const auto end = TrainUntilEnd(task, 2, rank == ending ? 2 : kNone, totals);
      // The leader may have ended the job before this task has heard that the run has ended.
      if (rank == 1 && absl::IsCancelled(end.status())) return;
      ASSERT_TRUE(end.ok()) << end.status();
      EXPECT_EQ(end->global_step, 2);
      FinishAndLeave(task);
    });
    EXPECT_TRUE(occurred) << variant;
  }
}

// No task has heard the announcement, and the group rolls back to the checkpoint of step 0.
TEST(EndRun, ARollbackKeepsTheRunFromEnding) {
  TestJob job(2, [](int64_t generation) -> Meeting::Fault {
    if (generation > 1) return {};
    return [](int64_t at, int) { return at == 23; };
  });
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, /*last_step=*/4, [](auto& options) { options.goes_back = true; });
    StepOutcome outcome = *task.strategy->Start();
    MetricTotals totals;
    while (outcome.global_step < 2)
      outcome = *task.strategy->Step(BatchOf(outcome.drawn, rank, 2), totals);
    outcome = *task.strategy->EndRun();
    EXPECT_TRUE(outcome.rolled_back);
    EXPECT_FALSE(outcome.run_ended);
    EXPECT_EQ(outcome.global_step, 0);
  });
}

// Trains to the step `last`. After each step, sets the rate that `rate_after` returns, if any.
StatusOr<std::vector<float>> TrainWithRates(
    Task& task, int ranks, int64_t last,
    const std::function<std::optional<double>(int64_t)>& rate_after) {
  ASSIGN_OR_RETURN(StepOutcome outcome, task.strategy->Start());
  MetricTotals totals;
  while (outcome.global_step < last) {
    if (const auto rate = rate_after(outcome.global_step))
      RETURN_IF_ERROR(task.strategy->SetLearningRate(*rate));
    ASSIGN_OR_RETURN(outcome,
                     task.strategy->Step(BatchOf(outcome.drawn, task.rank, ranks), totals));
  }
  ASSIGN_OR_RETURN(const state::Snapshot snapshot, task.strategy->TakeSnapshot());
  return ValuesOf(snapshot, Slots::kWith);
}

std::optional<double> FallingRate(int64_t step) {
  return step % 2 == 0 ? std::optional(0.1 / static_cast<double>(step + 1)) : std::nullopt;
}

// Returns the values after 8 steps, for which each rank sets the rates that rates_of(rank) returns.
std::vector<std::vector<float>> ValuesWithRates(
    const std::function<std::function<std::optional<double>(int64_t)>(int)>& rates_of) {
  constexpr int kRanks = 3;
  TestJob job(kRanks);
  std::vector<std::vector<float>> values(kRanks);
  OnThreads(kRanks, [&](int rank) {
    Task task;
    Create(job, kRanks, rank, task);
    const auto trained = TrainWithRates(task, kRanks, 8, rates_of(rank));
    ASSERT_TRUE(trained.ok()) << trained.status();
    const state::LearningRate last{.rate = *FallingRate(6), .step = 6};
    EXPECT_EQ(task.strategy->learning_rate(), last) << rank;
    values[static_cast<size_t>(rank)] = *trained;
  });
  return values;
}

TEST(SetLearningRate, OfAGroupIsDecidedByItsFirstTask) {
  const auto equal = ValuesWithRates([](int) { return FallingRate; });
  const auto by_first = ValuesWithRates([](int rank) {
    return [rank](int64_t step) { return rank == 0 ? FallingRate(step) : std::nullopt; };
  });
  const auto different = ValuesWithRates([](int rank) {
    return [rank](int64_t step) {
      return rank == 0 ? FallingRate(step) : std::optional(0.5 / (1.0 + rank));
    };
  });
  for (const auto& values : {equal, by_first, different}) {
    for (const std::vector<float>& of_rank : values) EXPECT_EQ(of_rank, equal[0]);
  }
}

// The replacement sets no rate, so it must use the one of the state that it receives, also if it is
// the first task, whose rate applies in all tasks.
TEST(SetLearningRate, OfAGroupReachesAReplacement) {
  constexpr int64_t kLost = 5, kSteps = 9;
  const auto once = [](int64_t step) { return step == 3 ? std::optional(0.004) : std::nullopt; };
  TestJob undisturbed(2);
  std::vector<float> expected;
  OnThreads(2, [&](int rank) {
    Task task;
    Create(undisturbed, 2, rank, task);
    const auto trained = TrainWithRates(task, 2, kSteps, once);
    ASSERT_TRUE(trained.ok()) << trained.status();
    if (rank == 0) expected = *trained;
  });
  for (const int lost : {0, 1}) {
    TestJob job(2);
    OnThreads(2, [&](int rank) {
      if (rank == lost) {
        Task first;
        Create(job, 2, rank, first);
        EXPECT_TRUE(TrainWithRates(first, 2, kLost, once).ok());
      }
      Task task;  // the survivor or the replacement
      Create(job, 2, rank, task);
      const auto trained = TrainWithRates(task, 2, kSteps, once);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_EQ(*trained, expected) << "rank " << rank << ", lost " << lost;
    });
  }
}

}  // namespace
}  // namespace tfjob::strategy
