// Runs tasks of multi_worker_mirrored as threads, for tests. Provides a model, its data, and
// training loops.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"
#include "runtime/strategy/multi_worker_mirrored_strategy.h"
#include "runtime/strategy/test_group.h"
#include "runtime/strategy/test_rows.h"
#include "runtime/strategy/test_tables.h"

namespace tfjob::strategy {

inline constexpr int64_t kGlobalBatch = 8;

// A model with its data.
struct Work {
  ModelDefinition definition;
  // Returns a rank's part of the global batch with this number. Batch number `bad` has a NaN on the
  // last rank.
  data::Batch (*batch_of)(int64_t batch, int rank, int ranks, int64_t bad) = nullptr;
};

inline constexpr char kDenseLayers[] =
    R"([{"Dense": {"units": 3, "activation": "tanh"}}, {"Dense": {"units": 1}}])";
inline constexpr char kSynchronizedLayers[] =
    R"([{"Dense": {"units": 3, "use_bias": false}},
        {"BatchNormalization": {"synchronized": true}}, {"Dense": {"units": 1}}])";

inline ModelDefinition Define(const char* layers = kDenseLayers) {
  ModelDefinition definition;
  const Json json = *ParseJson(layers, "layers");
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

inline constexpr int64_t kNone = -1;

inline data::Batch BatchOf(int64_t batch, int rank, int ranks, int64_t bad = kNone) {
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

inline Work DenseLayers() {
  return {.definition = Define(), .batch_of = BatchOf};
}

inline Work Synchronized() {
  return {.definition = Define(kSynchronizedLayers), .batch_of = BatchOf};
}

// Returns work with a table and a lazy optimizer, which updates exactly the rows that at least one
// rank has.
inline Work WithTable() {
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

inline void Create(TestJob& job, int ranks, int rank, Task& task, int64_t last_step = 0,
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
inline StatusOr<state::Snapshot> TrainOn(Task& task, StepOutcome first, int ranks, int64_t last,
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

inline StatusOr<state::Snapshot> TrainTo(Task& task, int ranks, int64_t last, int64_t bad = kNone) {
  ASSIGN_OR_RETURN(const StepOutcome first, task.strategy->Start());
  return TrainOn(task, first, ranks, last, bad);
}

inline void OnThreads(int ranks, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

// Returns the final state of each task after `steps` steps. The entry of a worker is empty if the
// leader did not wait for that worker.
inline std::vector<std::vector<float>> TrainAll(TestJob& job, int ranks, int64_t steps,
                                                int64_t bad = kNone,
                                                const Work& work = DenseLayers()) {
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

}  // namespace tfjob::strategy
