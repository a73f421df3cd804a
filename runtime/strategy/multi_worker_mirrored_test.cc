// Tests the strategy with threads as tasks, and injects faults between any two operations.
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <latch>
#include <optional>

#include "runtime/state/run_failure.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/test_tasks.h"

namespace tfjob::strategy {
namespace {

TEST(MultiWorkerMirrored, AllTasksEndWithTheSameState) {
  TestJob job(2);
  const auto states = TrainAll(job, 2, 10);
  EXPECT_EQ(states[0], states[1]);
}

// The step in which the fault occurs may be applied by some tasks or by none. The second batch is
// skipped, so two tasks may be at the same step, but at different positions in the data. A barrier
// follows the last step. Operation number `last_totals` exchanges the totals of the last step. If
// only the worker lacks these totals, the leader has the last state and ends the job.
void ExpectThatNoFaultLosesAStep(const Work& work, int64_t last_totals) {
  constexpr int64_t kSteps = 3, kBad = 1;
  TestJob undisturbed(2);
  const std::vector<float> expected = TrainAll(undisturbed, 2, kSteps, kBad, work)[0];
  for (int64_t operation = 1; operation <= last_totals + 1; ++operation) {
    for (int on = 0; on < 2; ++on) {
      bool occurred = false;
      TestJob job(2, [&](int64_t generation) -> Meeting::Fault {
        if (generation > 1) return {};
        return [&, operation, on](int64_t at, int rank) {
          const bool fails = at == operation && rank == on;
          occurred = occurred || fails;
          return fails;
        };
      });
      const auto states = TrainAll(job, 2, kSteps, kBad, work);
      EXPECT_TRUE(occurred) << operation;
      EXPECT_EQ(states[0], expected) << "operation " << operation << ", rank " << on;
      const bool ended = operation == last_totals && on == 1;
      EXPECT_EQ(states[1], ended ? std::vector<float>() : expected)
          << "operation " << operation << ", rank " << on;
    }
  }
}

// Sharing the state takes 15 operations and a barrier. Each of the 4 batches takes 3 operations,
// for the announcements, the gradients and the totals.
TEST(MultiWorkerMirrored, AFaultAtAnyOperationLosesNoStep) {
  ExpectThatNoFaultLosesAStep(DenseLayers(), 28);
}

// Sharing the state takes 12 operations and a barrier. Each of the 4 batches takes 6 operations,
// for the announcements, the dense gradients, the numbers of rows, the sizes, the rows and the
// totals.
TEST(MultiWorkerMirrored, AFaultAtAnyOperationLosesNoRowsOfATable) {
  ExpectThatNoFaultLosesAStep(WithTable(), 37);
}

// Sharing the state takes 20 operations and a barrier. Each of the 4 batches takes 5 operations,
// for the announcements, the statistics, their gradients, the gradients and the totals.
TEST(MultiWorkerMirrored, AFaultAtAnyOperationLosesNoSynchronizedStep) {
  ExpectThatNoFaultLosesAStep(Synchronized(), 41);
}

// The leader lacks a step that the worker has applied. While taking over the worker's state, the
// leader loses the worker, and is asked to stop before the two connect again. The leader must not
// save the incomplete state.
TEST(MultiWorkerMirrored, AStateThatHasArrivedInPartIsNotSaved) {
  constexpr int64_t kTotalsOfTheSecondStep = 22, kFirstVariable = 3;
  TestJob* running = nullptr;
  TestJob job(2, [&](int64_t generation) -> Meeting::Fault {
    return [&, generation](int64_t operation, int rank) {
      if (generation == 1) return rank == 0 && operation == kTotalsOfTheSecondStep;
      if (rank != 0 || operation != kFirstVariable) return false;
      EXPECT_TRUE(running->GroupOf(0)->Finish().ok());  // no generation follows
      return true;
    };
  });
  running = &job;
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task);
    EXPECT_EQ(TrainTo(task, 2, 10).status().code(), StatusCode::kCancelled);
    const auto state = task.strategy->TakeSnapshot();
    EXPECT_EQ(state.status().code(), rank == 0 ? StatusCode::kFailedPrecondition : StatusCode::kOk)
        << state.status();
    if (rank == 1) {
      EXPECT_EQ(state->global_step, 2);
    }
  });
}

// Trains for some steps and then exits like a process that is killed.
void TrainAndDie(TestJob& job, int ranks, int rank, int64_t steps) {
  Task task;
  Create(job, ranks, rank, task);
  EXPECT_TRUE(TrainTo(task, ranks, steps).ok());
}

void ExpectToSurviveTheLossOf(int lost) {
  TestJob undisturbed(2);
  const std::vector<float> expected = TrainAll(undisturbed, 2, 8)[0];
  TestJob job(2);
  std::vector<std::vector<float>> states(2);
  OnThreads(2, [&](int rank) {
    if (rank == lost) TrainAndDie(job, 2, rank, 3);
    Task task;  // the survivor or the replacement
    Create(job, 2, rank, task);
    const auto state = TrainTo(task, 2, 8);
    ASSERT_TRUE(state.ok()) << state.status();
    // The replacement of the leader takes over the state of the other task.
    EXPECT_EQ(task.provided, rank == 0 && lost != 0);
    states[static_cast<size_t>(rank)] = ValuesOf(*state, Slots::kWith);
  });
  EXPECT_EQ(states[0], expected);
  EXPECT_EQ(states[1], expected);
}

TEST(MultiWorkerMirrored, AReplacedWorkerTakesPartAgain) {
  ExpectToSurviveTheLossOf(1);
}

TEST(MultiWorkerMirrored, AReplacedLeaderTakesTheStateOfASurvivor) {
  ExpectToSurviveTheLossOf(0);
}

TEST(MultiWorkerMirrored, TheOthersLearnThatATaskEndsAndWaitForItsReplacement) {
  TestJob undisturbed(2);
  const std::vector<float> expected = TrainAll(undisturbed, 2, 8)[0];
  TestJob job(2);
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task);
    ASSERT_TRUE(TrainTo(task, 2, 3).ok());
    MetricTotals totals;
    if (rank == 1) {
      EXPECT_TRUE(task.strategy->Withdraw().ok());
      Task replacement;
      Create(job, 2, rank, replacement);
      const auto state = TrainTo(replacement, 2, 8);
      ASSERT_TRUE(state.ok()) << state.status();
      EXPECT_EQ(ValuesOf(*state, Slots::kWith), expected);
      return;
    }
    const auto outcome = task.strategy->Step(BatchOf(3, 0, 2), totals);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_TRUE(outcome->dropped);
    EXPECT_EQ(outcome->global_step, 3);
    EXPECT_EQ(outcome->drawn, 3);
    ASSERT_EQ(task.events.size(), 1);
    EXPECT_EQ(task.events[0].kind, state::PeerEvent::Kind::kServerEnding);
    EXPECT_EQ(task.events[0].peer, "worker 1");
    ASSERT_TRUE(TrainOn(task, *outcome, 2, 8).ok());
    EXPECT_EQ(ValuesOf(*task.strategy->TakeSnapshot(), Slots::kWith), expected);
  });
  const std::map<size_t, std::vector<std::string>> noted = {{0, {"worker 1 in 1"}}};
  EXPECT_EQ(job.noted(), noted);
}

// Trains from `outcome`, which it updates, until `last`. Returns the loss of each step.
std::vector<double> LossesTo(Task& task, StepOutcome& outcome, int64_t last) {
  std::vector<double> losses;
  while (outcome.global_step < last) {
    MetricTotals totals;
    const int64_t step = outcome.global_step;
    const auto next =
        task.strategy->Step(BatchOf(outcome.drawn, outcome.rank, outcome.ranks), totals);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    outcome = *next;
    EXPECT_EQ(outcome.drawn, outcome.global_step);
    if (outcome.global_step > step) losses.push_back(totals.loss());
  }
  return losses;
}

void Shrink(MultiWorkerMirroredOptions& options) {
  options.shrinks = true;
  options.claim_run = [] { return StatusOr<RunClaim>({.first_term = 1000, .written = true}); };
}

// Three tasks train, then two, then three again. Every step has the same loss as without the fault,
// because it uses the same examples. All members have the same term, which grows with each
// generation.
TEST(MultiWorkerMirrored, TheOthersGoOnWithoutALostTask) {
  constexpr int64_t kLost = 3, kAlone = 6, kSteps = 12;
  std::vector<double> expected, actual;
  TestJob undisturbed(3);
  OnThreads(3, [&](int rank) {
    Task task;
    Create(undisturbed, 3, rank, task);
    StepOutcome outcome = *task.strategy->Start();
    const std::vector<double> losses = LossesTo(task, outcome, kSteps);
    if (rank == 0) expected = losses;
  });
  TestJob job(3);
  std::latch go_on_alone(2);
  std::vector<std::vector<float>> states(3);
  OnThreads(3, [&](int rank) {
    auto task = std::make_unique<Task>();
    Create(job, 3, rank, *task, 0, Shrink);
    StepOutcome outcome = *task->strategy->Start();
    EXPECT_EQ(task->strategy->WriteTerm(), 1001);
    std::vector<double> losses = LossesTo(*task, outcome, rank == 2 ? kLost : kAlone);
    if (rank == 2) {
      task = std::make_unique<Task>();  // the replacement
      job.Lose(2);
      go_on_alone.wait();
      Create(job, 3, rank, *task, 0, Shrink);
      outcome = *task->strategy->Start();
    } else {
      EXPECT_EQ(outcome.ranks, 2);
      EXPECT_EQ(task->strategy->WriteTerm(), 1002);
      go_on_alone.count_down();
      if (rank == 0) job.AwaitTaskWaits();
    }
    std::ranges::copy(LossesTo(*task, outcome, kSteps), std::back_inserter(losses));
    EXPECT_EQ(outcome.ranks, 3);
    EXPECT_EQ(task->strategy->WriteTerm(), 1003);
    EXPECT_TRUE(task->strategy->Claim().written);
    if (rank == 0) actual = losses;
    states[static_cast<size_t>(rank)] = ValuesOf(*task->strategy->TakeSnapshot(), Slots::kWith);
  });
  ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-5 * expected[i]);
  EXPECT_EQ(states[1], states[0]);
  EXPECT_EQ(states[2], states[0]);
  EXPECT_EQ(job.claims(), std::set<int64_t>{1000});
}

// Sharing the state takes 16 operations, and each of the first 4 steps takes 3.
constexpr int64_t kSharing = 16, kGradientsOfTheFifthStep = kSharing + 4 * 3 + 2;

// An exchange of the fifth step fails. Both tasks then drop their states.
TEST(MultiWorkerMirrored, AGroupThatGoesBackContinuesFromTheCheckpoint) {
  constexpr int64_t kSaved = 2, kSteps = 6;
  TestJob undisturbed(2);
  const std::vector<float> expected = TrainAll(undisturbed, 2, kSteps)[0];
  TestJob job(2, [](int64_t generation) -> Meeting::Fault {
    if (generation > 1) return {};
    return [](int64_t operation, int rank) {
      return operation == kGradientsOfTheFifthStep && rank == 1;
    };
  });
  std::optional<state::Snapshot> checkpoint;
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, 0, [&](auto& options) {
      options.goes_back = true;
      options.common.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
        return checkpoint ? *checkpoint : InitialState(Define());
      };
    });
    StepOutcome outcome = *task.strategy->Start();
    LossesTo(task, outcome, kSaved);
    if (rank == 0) checkpoint = *task.strategy->TakeSnapshot();
    EXPECT_EQ(LossesTo(task, outcome, kSteps).size(), 2 + 4) << "steps 3 and 4, then 3 to 6";
    EXPECT_EQ(ValuesOf(*task.strategy->TakeSnapshot(), Slots::kWith), expected);
  });
}

// The job ends while both tasks wait for the next generation. A leader that was asked to exit would
// save its state now.
TEST(MultiWorkerMirrored, ATaskThatGoesBackKeepsItsStateWhileItWaits) {
  TestJob job(2, [&job](int64_t) -> Meeting::Fault {
    return [&job](int64_t operation, int) {
      if (operation != kGradientsOfTheFifthStep) return false;
      EXPECT_TRUE(job.GroupOf(0)->Finish().ok());
      return true;
    };
  });
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, 0, [](auto& options) { options.goes_back = true; });
    EXPECT_TRUE(absl::IsCancelled(TrainTo(task, 2, 6).status()));
    const StatusOr<state::Snapshot> state = task.strategy->TakeSnapshot();
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->global_step, 4);
  });
}

// The leader is lost before it has saved the last state, and the other task drops this state.
TEST(MultiWorkerMirrored, ATaskThatLeavesTrainsOnIfTheGroupGoesBack) {
  constexpr int64_t kSteps = 4;
  TestJob job(2, [](int64_t generation) -> Meeting::Fault {
    if (generation != 2) return {};
    return [](int64_t operation, int rank) { return operation == 1 && rank == 1; };
  });
  OnThreads(2, [&](int rank) {
    if (rank == 0) TrainAndDie(job, 2, 0, kSteps);
    Task task;
    Create(job, 2, rank, task, 0, [](auto& options) { options.goes_back = true; });
    auto state = TrainTo(task, 2, kSteps);
    ASSERT_TRUE(state.ok()) << state.status();
    if (rank == 1) {
      EXPECT_TRUE(absl::IsAborted(task.strategy->Leave()));
      state = TrainTo(task, 2, kSteps);
      ASSERT_TRUE(state.ok()) << state.status();
    }
    EXPECT_EQ(state->global_step, kSteps);
    EXPECT_EQ(rank == 0 ? task.strategy->Finish() : OkStatus(), OkStatus());
    EXPECT_TRUE(task.strategy->Leave().ok());
  });
  EXPECT_EQ(job.generations(), 3) << "it trains in the generation in which it has gone back";
}

// Runs two tasks that roll back to the initial state after a loss. The operation `operation` of the
// generation `generation` fails on rank 1 with `error`. Returns the number of steps that a task
// takes.
size_t StepsIfFails(int64_t generation, int64_t operation, const Status& error) {
  TestJob job(2, [&](int64_t number) -> Meeting::Fault {
    if (number != generation) return {};
    return [operation](int64_t at, int rank) { return at == operation && rank == 1; };
  });
  job.FailWith(error);
  size_t steps = 0;
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, 0, [](auto& options) { options.goes_back = true; });
    StepOutcome outcome = *task.strategy->Start();
    const size_t taken = LossesTo(task, outcome, 6).size();
    if (rank == 0) steps = taken;
  });
  return steps;
}

TEST(MultiWorkerMirrored, OnlyALossMakesTheGroupGoBack) {
  const Status lost = Unavailable("worker 1 was lost"), ends = Aborted("worker 1 ends");
  EXPECT_EQ(StepsIfFails(1, kGradientsOfTheFifthStep, lost), 4u + 6u);
  EXPECT_EQ(StepsIfFails(1, kGradientsOfTheFifthStep, ends), 6u);
}

// As soon as all members have the state, another member may join again, which ends the generation.
TEST(MultiWorkerMirrored, AFailureAfterTheStateIsSharedDoesNotMakeTheGroupGoBack) {
  TestJob job(2, [](int64_t generation) -> Meeting::Fault {
    if (generation > 1) return {};
    return [](int64_t operation, int) { return operation == kSharing; };
  });
  int provided = 0;
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, 0, [&](auto& options) {
      options.goes_back = true;
      options.common.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
        ++provided;
        return InitialState(Define());
      };
    });
    EXPECT_TRUE(TrainTo(task, 2, 3).ok());
  });
  EXPECT_EQ(provided, 1);
}

TEST(MultiWorkerMirrored, AnErrorThatComesBackInEveryGenerationEndsTheTask) {
  TestJob job(2);
  job.FailAllocations(ResourceExhausted("no memory"));
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task);
    EXPECT_EQ(task.strategy->Start().status(), ResourceExhausted("no memory"));
  });
  EXPECT_EQ(job.generations(), 3);
}

TEST(MultiWorkerMirrored, AFailureOfAWorkerEndsTheRunForAll) {
  TestJob job(2);
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task);
    ASSERT_TRUE(TrainTo(task, 2, 3).ok());
    const Status failure = state::RunFailure("step 3: worker 0 has found a NaN");
    if (rank == 1) {
      EXPECT_TRUE(task.strategy->Fail(failure).ok());
      return;
    }
    MetricTotals totals;
    EXPECT_EQ(task.strategy->Step(BatchOf(3, 0, 2), totals).status(), failure);
  });
}

// If the leader is lost after the last step, its replacement gets the last state.
TEST(MultiWorkerMirrored, WorkersKeepTheLastStateUntilTheJobHasEnded) {
  TestJob job(2);
  OnThreads(2, [&](int rank) {
    if (rank == 0) TrainAndDie(job, 2, 0, 4);
    Task task;
    Create(job, 2, rank, task);
    const auto state = TrainTo(task, 2, 4);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->global_step, 4);
    EXPECT_FALSE(rank == 0 && task.provided);
    if (rank == 0) {
      EXPECT_TRUE(task.strategy->Finish().ok());
    }
    EXPECT_TRUE(task.strategy->Leave().ok());
  });
}

// Starts two tasks, the second one with changed options. Returns whether exactly one was refused.
bool IsRefused(const Change& change) {
  TestJob job(2);
  std::vector<Status> started(2);
  OnThreads(2, [&](int rank) {
    Task task;
    Create(job, 2, rank, task, 0, rank == 1 ? change : nullptr);
    started[static_cast<size_t>(rank)] = task.strategy->Start().status();
    EXPECT_TRUE(job.GroupOf(0)->Finish().ok());  // the other one waits
  });
  return absl::IsFailedPrecondition(started[0]) != absl::IsFailedPrecondition(started[1]);
}

TEST(MultiWorkerMirrored, TasksAgreeOnWhatTheyTrain) {
  EXPECT_FALSE(IsRefused([](MultiWorkerMirroredOptions&) {}));
  EXPECT_TRUE(IsRefused([](MultiWorkerMirroredOptions& o) { ++o.global_batch; }));
  EXPECT_TRUE(IsRefused([](MultiWorkerMirroredOptions& o) { o.agreement = "max_steps: 9\n"; }));
}

}  // namespace
}  // namespace tfjob::strategy
