// Tests the strategy with threads as tasks, and injects faults between any two operations.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <latch>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/multi_worker_mirrored_strategy.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/test_group.h"
#include "runtime/strategy/test_rows.h"
#include "runtime/strategy/test_tables.h"

namespace tfjob::strategy {
namespace {

constexpr int64_t kGlobalBatch = 8;

// A model with its data.
struct Work {
  ModelDefinition definition;
  // Returns a rank's part of the global batch with this number. The batch `bad` has a NaN on the
  // last rank.
  data::Batch (*batch_of)(int64_t batch, int rank, int ranks, int64_t bad) = nullptr;
};

ModelDefinition Define() {
  ModelDefinition definition;
  const Json json = *ParseJson(
      R"([{"Dense": {"units": 3, "activation": "tanh"}}, {"Dense": {"units": 1}}])", "layers");
  definition.model = *model::ReadLayers(JsonField(json, "model.layers"));
  definition.build.batch_size = kGlobalBatch / 2;
  definition.build.features = model::Features({2});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  definition.seed = 5;
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

constexpr int64_t kNone = -1;

data::Batch BatchOf(int64_t batch, int rank, int ranks, int64_t bad = kNone) {
  const auto [begin, size] = collectives::SliceOf(kGlobalBatch, rank, ranks);
  Tensor x(DType::kFloat32, {size, 2}), y(DType::kFloat32, {size});
  for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
    const int64_t row = batch * kGlobalBatch + begin + static_cast<int64_t>(i);
    x.data<float>()[2 * i] = static_cast<float>(row * 37 % 101) / 50 - 1;
    x.data<float>()[2 * i + 1] = static_cast<float>(row * 53 % 101) / 50 - 1;
    y.data<float>()[i] = x.data<float>()[2 * i] - 2 * x.data<float>()[2 * i + 1];
  }
  if (batch == bad && rank == ranks - 1) x.data<float>()[0] = NAN;
  return {.tensors = {{"features", std::move(x)}, {model::kLabels, std::move(y)}}, .position = {}};
}

Work DenseLayers() {
  return {.definition = Define(), .batch_of = BatchOf};
}

// A lazy optimizer, which updates exactly the rows that at least one rank has.
Work WithTable() {
  optimizer::Optimizer lazy = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  lazy.lazy = true;
  Work work{.definition = Pooled(lazy, true)};
  work.definition.build.clipping = {.kind = optimizer::ClipKind::kGlobalNorm, .limit = 0.02};
  work.batch_of = [](int64_t batch, int rank, int ranks, int64_t bad) {
    const auto [begin, size] = collectives::SliceOf(kBatch, rank, ranks);
    data::Batch part = PartOf(TableBatch(batch), begin, size);
    if (batch == bad && rank == ranks - 1) part.tensors[1].value.data<float>()[0] = NAN;
    return part;
  };
  return work;
}

struct Task {
  int rank = 0;
  Work work = DenseLayers();
  std::unique_ptr<Strategy> strategy;
  std::vector<state::PeerEvent> events;
  bool provided = false;
};

using Change = std::function<void(MultiWorkerMirroredOptions&)>;

void Create(TestJob& job, int ranks, int rank, Task& task, int64_t last_step = 0,
            const Change& change = nullptr) {
  task.rank = rank;
  ModelDefinition definition = task.work.definition;
  definition.build.batch_size = kGlobalBatch / ranks;
  MultiWorkerMirroredOptions options{
      .common = {.definition = definition,
                 .device = exec::CpuDevice(),
                 .on_non_finite = config::OnNonFinite::kSkip,
                 .replica = rank,
                 .provide_state =
                     [&task, definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
                   task.provided = true;
                   return InitialState(definition);
                 }},
      .group = job.GroupOf(rank),
      .leader = {"chief", 0},
      .leads = rank == 0,
      .global_batch = kGlobalBatch,
      .last_step = last_step,
      .on_event = [&task](const state::PeerEvent& event) { task.events.push_back(event); }};
  if (change) change(options);
  task.strategy = *MakeMultiWorkerMirrored(std::move(options));
}

// Trains from the outcome `first` to the step `last`. Returns the state, or the error of a step.
// Expects the task to report every batch once, whether it applied the step itself or took over the
// state of a task that did.
StatusOr<state::Snapshot> TrainOn(Task& task, StepOutcome first, int ranks, int64_t last,
                                  int64_t bad = kNone) {
  StepOutcome outcome = first;
  MetricTotals totals;
  int64_t skipped = 0;
  while (outcome.global_step < last) {
    const data::Batch batch = task.work.batch_of(outcome.drawn, task.rank, ranks, bad);
    ASSIGN_OR_RETURN(outcome, task.strategy->Step(batch, totals));
    skipped += outcome.skipped ? 1 : 0;
  }
  EXPECT_EQ(outcome.drawn, last + (bad == kNone ? 0 : 1));
  EXPECT_EQ(totals.examples, kGlobalBatch * (last - first.global_step));
  EXPECT_EQ(skipped, outcome.drawn - first.drawn - (last - first.global_step));
  return task.strategy->TakeSnapshot();
}

StatusOr<state::Snapshot> TrainTo(Task& task, int ranks, int64_t last, int64_t bad = kNone) {
  ASSIGN_OR_RETURN(const StepOutcome first, task.strategy->Start());
  return TrainOn(task, first, ranks, last, bad);
}

void OnThreads(int ranks, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

// Returns the final state of each task after `steps` steps. The entry of a worker is empty if the
// leader did not wait for that worker.
std::vector<std::vector<float>> TrainAll(TestJob& job, int ranks, int64_t steps,
                                         int64_t bad = kNone, const Work& work = DenseLayers()) {
  std::vector<std::vector<float>> states(static_cast<size_t>(ranks));
  OnThreads(ranks, [&](int rank) {
    Task task{.work = work};
    Create(job, ranks, rank, task, steps);
    const auto state = TrainTo(task, ranks, steps, bad);
    // The leader has ended the job, and this task lacks the last step.
    if (rank > 0 && absl::IsCancelled(state.status())) return;
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->global_step, steps);
    EXPECT_EQ(task.provided, rank == 0);
    states[static_cast<size_t>(rank)] = ValuesOf(*state, Slots::kWith);
    if (rank == 0) {
      EXPECT_TRUE(task.strategy->Finish().ok());
    }
    EXPECT_TRUE(task.strategy->Leave().ok());
  });
  return states;
}

TEST(MultiWorkerMirrored, AllTasksEndWithTheSameState) {
  TestJob job(2);
  const auto states = TrainAll(job, 2, 10);
  EXPECT_EQ(states[0], states[1]);
}

// The step in which the fault occurs may be applied by some tasks or by none. The second batch is
// skipped, so two tasks may be at the same step, but at different positions in the data. A barrier
// follows the last step. The operation with the number `last_totals` exchanges the totals of the
// last step. If only the worker lacks these totals, the leader has the last state and ends the job.
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

// Sharing the state takes 15 operations, and each of the 4 batches takes 3: announcements,
// gradients, totals.
TEST(MultiWorkerMirrored, AFaultAtAnyOperationLosesNoStep) {
  ExpectThatNoFaultLosesAStep(DenseLayers(), 27);
}

// Sharing the state takes 12 operations, and each of the 4 batches takes 6: announcements, dense
// gradients, the number of rows, the sizes, the rows, and the totals.
TEST(MultiWorkerMirrored, AFaultAtAnyOperationLosesNoRowsOfATable) {
  ExpectThatNoFaultLosesAStep(WithTable(), 36);
}

// The leader lacks a step that the worker has applied. While taking over the worker's state, the
// leader loses the worker, and is asked to end before the two connect again. The leader must not
// save the incomplete state.
TEST(MultiWorkerMirrored, AStateThatHasArrivedInPartIsNotSaved) {
  constexpr int64_t kTotalsOfTheSecondStep = 21, kFirstVariable = 3;
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

// Trains for some steps and then ends like a process that is killed.
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
    Task task;  // of the survivor, or of the replacement
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
// because it uses the same examples. All members have the same term, which grows.
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
}

// An exchange of the fifth step fails. Both tasks then drop their states.
TEST(MultiWorkerMirrored, AGroupThatGoesBackContinuesFromTheCheckpoint) {
  constexpr int64_t kSaved = 2, kSteps = 6, kGradientsOfTheFifthStep = 15 + 4 * 3 + 2;
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
