// Tests how the tasks of an all-reduce job share a validation (Strategy::Validate).
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <vector>

#include "runtime/strategy/test_tasks.h"

namespace tfjob::strategy {
namespace {

constexpr int64_t kBatches = 7;

// Adds the sums of the batches of a part. Batch b has b + 1 examples.
Status AddBatches(int64_t batches, const ValidationPart& part, MetricTotals& totals) {
  const auto [begin, size] = data::PartOf(batches, part.part, part.parts);
  for (int64_t batch = begin; batch < begin + size; ++batch) {
    totals.examples += batch + 1;
    totals.loss_sum += 0.1 * static_cast<double>(batch + 1);
    totals.metric_sums.resize(2);
    totals.metric_sums[1] += static_cast<double>(batch);
  }
  return OkStatus();
}

Validation OfBatches(int64_t batches, std::atomic<int>* evaluated = nullptr) {
  return {.evaluate =
              [batches, evaluated](const ValidationPart& part, MetricTotals& totals) {
                if (evaluated != nullptr) ++*evaluated;
                return AddBatches(batches, part, totals);
              },
          .agreement = StrCat("batches: ", batches)};
}

void ExpectWhole(const MetricTotals& totals, int64_t batches = kBatches) {
  MetricTotals expected;
  ASSERT_TRUE(AddBatches(batches, {}, expected).ok());
  EXPECT_EQ(totals.examples, expected.examples);
  EXPECT_NEAR(totals.loss_sum, expected.loss_sum, 1e-12);
  ASSERT_EQ(totals.metric_sums.size(), 2u);
  EXPECT_EQ(totals.metric_sums[1], expected.metric_sums[1]);
}

// Trains to the step `last`.
StepOutcome StepTo(Task& task, int64_t last) {
  StepOutcome outcome = *task.strategy->Start();
  MetricTotals totals;
  while (outcome.global_step < last) {
    const data::Batch batch = BatchOf(outcome.drawn, outcome.rank, outcome.ranks);
    outcome = *task.strategy->Step(batch, totals);
  }
  return outcome;
}

TEST(Validation, EveryTaskEvaluatesAPartAndGetsTheSumOfAll) {
  for (const int64_t batches : {kBatches, int64_t{2}}) {  // with two batches, a part is empty
    TestJob job(3);
    std::vector<MetricTotals> totals(3);
    std::atomic<int> evaluated = 0;
    OnThreads(3, [&](int rank) {
      Task task;
      Create(job, 3, rank, task, /*last_step=*/9);
      StepTo(task, 2);
      const auto outcome = task.strategy->Validate(OfBatches(batches, &evaluated));
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      ASSERT_TRUE(outcome->totals.has_value());
      ExpectWhole(*outcome->totals, batches);
      EXPECT_EQ(outcome->next->global_step, 2);
      totals[static_cast<size_t>(rank)] = *outcome->totals;
    });
    EXPECT_EQ(evaluated, 3);
    for (const MetricTotals& other : totals) EXPECT_EQ(other.loss_sum, totals[0].loss_sum);
  }
}

// After the last step, tasks leave the group, and the replacement of a task would never validate.
TEST(Validation, AfterTheLastStepATaskDoesNotWaitForTheOthers) {
  TestJob job(2);
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, /*last_step=*/1);
    StepTo(task, 1);
    if (rank == 0) {
      ExpectWhole(*task.strategy->Validate(OfBatches(kBatches))->totals);
      EXPECT_TRUE(task.strategy->Finish().ok());
    }
    EXPECT_TRUE(task.strategy->Leave().ok());
  });
}

TEST(Validation, OtherStrategiesEvaluateEverythingInTheTask) {
  TestJob job(1);
  Task task;
  Create(job, 1, 0, task);
  StepTo(task, 1);
  ExpectWhole(*task.strategy->Validate(OfBatches(kBatches))->totals);
}

// Trains one step, validates, and trains one further step.
void StepValidateStep(TestJob& job, int ranks, int rank, std::vector<std::vector<float>>& states) {
  Task task;
  Create(job, ranks, rank, task, /*last_step=*/2);
  StepOutcome outcome = StepTo(task, 1);
  const auto validated = task.strategy->Validate(OfBatches(kBatches));
  ASSERT_TRUE(validated.ok()) << validated.status();
  ASSERT_TRUE(validated->totals.has_value());
  ExpectWhole(*validated->totals);
  outcome = *validated->next;
  MetricTotals totals;
  while (outcome.global_step < 2) {
    const auto next =
        task.strategy->Step(BatchOf(outcome.drawn, outcome.rank, outcome.ranks), totals);
    // The leader has ended the job, and this task lacks the last step.
    if (rank > 0 && absl::IsCancelled(next.status())) return;
    ASSERT_TRUE(next.ok()) << next.status();
    outcome = *next;
  }
  states[static_cast<size_t>(rank)] = ValuesOf(*task.strategy->TakeSnapshot(), Slots::kWith);
  if (rank == 0) {
    EXPECT_TRUE(task.strategy->Finish().ok());
  }
  EXPECT_TRUE(task.strategy->Leave().ok());
}

// The first step ends with operation 19. The validation takes the announcements, two operations for
// the parts, and a barrier. Depending on the operation and the task that fail, some tasks lack the
// result.
TEST(Validation, AFaultAtAnyOperationLosesNeitherAStepNorTheResult) {
  std::vector<std::vector<float>> expected(2);
  TestJob calm(2);
  OnThreads(2, [&](int rank) { StepValidateStep(calm, 2, rank, expected); });
  int occurred = 0;
  for (int64_t operation = 19; operation < 26; ++operation) {
    for (int on = 0; on < 2; ++on) {
      std::atomic<bool> fails = false;
      TestJob job(2, [&](int64_t generation) -> Meeting::Fault {
        if (generation > 1) return {};
        return [&, operation, on](int64_t at, int rank) {
          const bool now = at == operation && rank == on;
          fails = fails || now;
          return now;
        };
      });
      std::vector<std::vector<float>> states(2);
      OnThreads(2, [&](int rank) { StepValidateStep(job, 2, rank, states); });
      EXPECT_EQ(states[0], expected[0]) << operation << " on " << on;
      occurred += fails ? 1 : 0;
    }
  }
  EXPECT_EQ(occurred, 14);
}

// Rank 2 is lost while it evaluates its part. The other ranks learn of this between two batches,
// and divide the validation between themselves.
TEST(Validation, TheOthersRepeatItWithoutALostTask) {
  TestJob job(3);
  std::atomic<int> cut = 0;
  OnThreads(3, [&](int rank) {
    Task task;
    Create(job, 3, rank, task, /*last_step=*/9);
    StepTo(task, 1);
    Validation validation = OfBatches(kBatches);
    if (rank == 2) {
      validation.evaluate = [](const auto&, MetricTotals&) { return Unavailable("it is lost"); };
      EXPECT_TRUE(absl::IsUnavailable(task.strategy->Validate(validation).status()));
      job.Lose(2);
      return;
    }
    validation.evaluate = [&](const ValidationPart& part, MetricTotals& totals) {
      while (part.parts == 3 && part.needed()) std::this_thread::yield();
      if (part.parts == 3) return ++cut, OkStatus();
      EXPECT_EQ(part.parts, 2);
      return AddBatches(kBatches, part, totals);
    };
    const auto outcome = task.strategy->Validate(validation);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ExpectWhole(*outcome->totals);
    EXPECT_EQ(outcome->next->ranks, 2);
    EXPECT_EQ(outcome->next->global_step, 1);
  });
  EXPECT_EQ(cut, 2);
}

// A replacement starts after the step, so it does not call Validate.
TEST(Validation, AReplacementTakesPartWithoutEvaluating) {
  TestJob job(2);
  std::atomic<int> evaluated = 0;
  OnThreads(2, [&](int rank) {
    if (rank == 1) {
      Task lost;
      Create(job, 2, rank, lost, /*last_step=*/9);
      StepTo(lost, 1);
    }
    Task task;
    Create(job, 2, rank, task, /*last_step=*/9);
    StepOutcome outcome = StepTo(task, 1);
    if (rank == 0) {
      const auto validated = task.strategy->Validate(OfBatches(kBatches, &evaluated));
      ASSERT_TRUE(validated.ok()) << validated.status();
      ExpectWhole(*validated->totals);
      outcome = *validated->next;
    }
    MetricTotals totals;
    const auto next = task.strategy->Step(BatchOf(outcome.drawn, rank, 2), totals);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(next->global_step, 2);
  });
  EXPECT_EQ(evaluated, 1);
}

// The other task has finished the validation, and is about to take the next step.
TEST(Validation, ATaskThatComesLateGetsTheResult) {
  TestJob job(2);
  std::atomic<int> evaluated = 0;
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, /*last_step=*/9);
    StepTo(task, 1);
    StatusOr<ValidationOutcome> outcome = task.strategy->Validate(OfBatches(kBatches, &evaluated));
    if (rank == 1) outcome = task.strategy->Validate(OfBatches(kBatches, &evaluated));
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ExpectWhole(*outcome->totals);
    MetricTotals totals;
    const auto next = task.strategy->Step(BatchOf(outcome->next->drawn, rank, 2), totals);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(next->global_step, 2);
  });
  EXPECT_EQ(evaluated, 2);
}

TEST(Validation, ATaskThatIsAskedToStopLeavesTheRestToTheOthers) {
  TestJob job(3);
  OnThreads(3, [&](int rank) {
    Task task;
    Create(job, 3, rank, task, /*last_step=*/9);
    StepTo(task, 1);
    Validation validation = OfBatches(kBatches);
    if (rank == 1) {
      validation.evaluate = [](const auto&, MetricTotals&) { return Cancelled("asked to stop"); };
      EXPECT_TRUE(absl::IsCancelled(task.strategy->Validate(validation).status()));
      job.Lose(1);
      EXPECT_TRUE(task.strategy->Withdraw().ok());
      return;
    }
    const auto outcome = task.strategy->Validate(validation);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ExpectWhole(*outcome->totals);
    EXPECT_EQ(outcome->next->ranks, 2);
  });
}

TEST(Validation, TasksThatValidateOnDifferentExamplesStop) {
  TestJob job(2);
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, /*last_step=*/9);
    StepTo(task, 1);
    const auto outcome = task.strategy->Validate(OfBatches(kBatches + rank));
    EXPECT_TRUE(absl::IsFailedPrecondition(outcome.status())) << outcome.status();
    EXPECT_NE(Message(outcome.status()).find("has 'batches: 7', worker 1 has 'batches: 8'"),
              std::string_view::npos)
        << outcome.status();
  });
}

// The group goes back to the checkpoint of step 0, so there is nothing left to validate.
TEST(Validation, ARollbackMakesItMoot) {
  TestJob job(2, [](int64_t generation) -> Meeting::Fault {
    if (generation > 1) return {};
    return [](int64_t at, int) { return at == 20; };
  });
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, /*last_step=*/4, [](auto& options) { options.goes_back = true; });
    StepTo(task, 1);
    const auto outcome = task.strategy->Validate(OfBatches(kBatches));
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_FALSE(outcome->totals.has_value());
    EXPECT_EQ(outcome->next->global_step, 0);
  });
}

// A callback of one task has ended the run, while the other task still validates.
TEST(Validation, PrecedesTheEndOfTheRun) {
  TestJob job(2);
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, /*last_step=*/9);
    StepTo(task, 1);
    if (rank == 1) {
      ExpectWhole(*task.strategy->Validate(OfBatches(kBatches))->totals);
      MetricTotals totals;
      EXPECT_TRUE(task.strategy->Step(BatchOf(1, 1, 2), totals)->run_ended);
    } else {
      EXPECT_TRUE(task.strategy->EndRun()->run_ended);
    }
  });
}

}  // namespace
}  // namespace tfjob::strategy
