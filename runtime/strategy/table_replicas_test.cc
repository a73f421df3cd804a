// Compares two ways of training with tables: with replicas that exchange gradients by rows, and on
// one device that processes the whole global batch. The ranks of the replicas are threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/state/run_failure.h"
#include "runtime/strategy/mirrored_strategy.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/replica.h"
#include "runtime/strategy/test_group.h"
#include "runtime/strategy/test_rows.h"
#include "runtime/strategy/test_tables.h"

namespace tfjob::strategy {
namespace {

constexpr int64_t kSteps = 30;

// The number of examples of a batch that each rank has, kBatch in total.
using Parts = std::vector<int64_t>;

data::Batch BatchFor(const ModelDefinition& definition, int64_t step) {
  return TableBatch(step, definition.variables[0].shape.dim(0));
}

// Takes a step on a rank's part of the batch `whole`.
Status Step(Replica& replica, const data::Batch& whole, const Parts& parts, int rank, int64_t step,
            MetricTotals& totals) {
  const int64_t first = std::accumulate(parts.begin(), parts.begin() + rank, int64_t{0});
  const int64_t with = std::ranges::count_if(parts, [](int64_t part) { return part > 0; });
  const data::Batch batch = PartOf(whole, first, parts[static_cast<size_t>(rank)]);
  RETURN_IF_ERROR(replica.Compute(batch, step, {kBatch, with}));
  RETURN_IF_ERROR(replica.Reduce());
  return replica.Apply(step, totals).status();
}

std::vector<state::Snapshot> StatesOfOneDevice(const ModelDefinition& definition) {
  auto one = *MakeOneDevice({.task_type = "worker"}, TableOptions(definition));
  EXPECT_TRUE(one->Start().ok());
  std::vector<state::Snapshot> states{*one->TakeSnapshot()};
  MetricTotals totals;
  for (int64_t step = 0; step < kSteps; ++step) {
    EXPECT_TRUE(one->Step(BatchFor(definition, step), totals).ok());
    states.push_back(*one->TakeSnapshot());
  }
  return states;
}

// Trains replicas. Each step starts from the state of the single device, so that differences do not
// accumulate. Expects each update of the variables and the slots to equal that of the single
// device, and to be bit-identical on all ranks.
void ExpectEqualUpdates(const ModelDefinition& definition, const Parts& parts) {
  SCOPED_TRACE(StrCat(Name(definition.state.optimizer.kind), ", ", parts.size(), " ranks"));
  const std::vector<state::Snapshot> states = StatesOfOneDevice(definition);
  std::vector<std::vector<std::vector<float>>> results(parts.size());
  OnEveryRank(parts.size(), [&](int rank, collectives::Communicator& communicator) {
    const int64_t part = parts[static_cast<size_t>(rank)];
    auto replica = *Replica::Create(TableOptions(WithBatchSize(definition, part)), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    for (int64_t step = 0; step < kSteps; ++step) {
      const auto at = static_cast<size_t>(step);
      ASSERT_TRUE(replica->Load(states[at]).ok());
      MetricTotals totals;
      ASSERT_EQ(Step(*replica, BatchFor(definition, step), parts, rank, step, totals), OkStatus());
      const state::Snapshot after = replica->BeginSnapshot(step + 1, "")->Finish();
      for (const Slots slots : {Slots::kWithout, Slots::kWith}) {
        const std::vector<float> before = ValuesOf(states[at], slots),
                                 expected = ValuesOf(states[at + 1], slots);
        ASSERT_LE(Norm(ValuesOf(after, slots), expected), 1e-5 * Norm(before, expected))
            << "step " << step;
      }
      results[static_cast<size_t>(rank)].push_back(ValuesOf(after, Slots::kWith));
    }
  });
  for (const auto& result : results) EXPECT_EQ(result, results[0]) << "ranks differ";
}

// With four ranks, or if a rank has no examples, most rows occur on one rank only.
TEST(TableReplicas, TakeTheStepsOfOneDevice) {
  for (const optimizer::Optimizer& optimizer : Optimizers()) {
    for (const Parts& parts : {Parts{4, 4}, {2, 2, 2, 2}, {3, 0, 5}})
      ExpectEqualUpdates(Pooled(optimizer, true), parts);
  }
}

TEST(TableReplicas, TakeTheLazyStepsOfOneDevice) {
  for (optimizer::Optimizer optimizer : Optimizers()) {
    optimizer.lazy = true;
    for (const Parts& parts : {Parts{4, 4}, {2, 2, 2, 2}, {3, 0, 5}})
      ExpectEqualUpdates(Pooled(optimizer, true), parts);
  }
}

TEST(TableReplicas, GoWithAllOptions) {
  for (const ModelDefinition& definition : SpecialOptions())
    ExpectEqualUpdates(definition, {3, 3, 2});
}

// Each of the four ranks has the same two of the table's three rows. A lazy step must not change
// the third row.
TEST(TableReplicas, GradientsThatTravelAsAWholeTakeTheSameSteps) {
  ASSERT_LT(MostRowsToSend({.rows = 3, .cols = 5}), 8);
  for (const bool lazy : {false, true}) {
    optimizer::Optimizer adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
    adam.lazy = lazy;
    ExpectEqualUpdates(Pooled(adam, true, "null", /*frozen=*/false, /*table_rows=*/3),
                       {2, 2, 2, 2});
  }
}

TEST(TableReplicas, ClipByEveryKindOfNorm) {
  for (const auto kind : {optimizer::ClipKind::kValue, optimizer::ClipKind::kNorm,
                          optimizer::ClipKind::kGlobalNorm}) {
    ModelDefinition definition = Pooled(Optimizers()[0], true);
    definition.build.clipping = {.kind = kind, .limit = 0.02};
    ExpectEqualUpdates(definition, {3, 5});
    definition.state.optimizer.lazy = true;
    ExpectEqualUpdates(definition, {3, 5});
  }
}

TEST(TableReplicas, LazyStepsLeaveTheRowsThatNoRankHas) {
  optimizer::Optimizer lazy = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  lazy.lazy = true;
  const ModelDefinition definition = Pooled(lazy, true);
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    auto replica = *Replica::Create(TableOptions(WithBatchSize(definition, 4)), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    MetricTotals totals;
    ASSERT_EQ(Step(*replica, TableBatch(0), {4, 4}, rank, 0, totals), OkStatus());
    const state::Snapshot before = replica->BeginSnapshot(1, "")->Finish();
    ASSERT_EQ(Step(*replica, TableBatch(1), {4, 4}, rank, 1, totals), OkStatus());
    const state::Snapshot after = replica->BeginSnapshot(2, "")->Finish();
    std::vector<bool> used(kRows);
    const data::Batch batch = TableBatch(1);
    for (const float id : batch.tensors[0].value.data<float>())
      used[static_cast<size_t>(id)] = true;
    for (size_t at = 0; at < kRows * 5; ++at) {
      EXPECT_EQ(
          before.variables[0].value.data<float>()[at] == after.variables[0].value.data<float>()[at],
          !used[at / 5])
          << "element " << at;
    }
  });
}

// A rank that has previously taken a step with more rows still clips by the same norm as the other
// rank.
TEST(TableReplicas, ARankThatHasTakenOtherStepsHasTheSameBits) {
  ModelDefinition definition = Pooled(Optimizers()[0], true);
  definition.build.clipping = {.kind = optimizer::ClipKind::kGlobalNorm, .limit = 0.02};
  std::vector<std::vector<float>> values(2);
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    auto replica = *Replica::Create(TableOptions(WithBatchSize(definition, 1)), 0);
    MetricTotals totals;
    if (rank == 0) {
      MeetingCommunicator alone(std::make_shared<Meeting>(1), 0);
      ASSERT_TRUE(replica->Connect(alone).ok());
      ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
      ASSERT_EQ(Step(*replica, TableBatch(0), {kBatch}, 0, 0, totals), OkStatus());
      replica->Disconnect();
    }
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    ASSERT_TRUE(replica->Compute(PartOf(TableBatch(0), rank, 1), 0, {2, 2}).ok());
    ASSERT_TRUE(replica->Reduce().ok());
    ASSERT_TRUE(*replica->Apply(0, totals));
    values[static_cast<size_t>(rank)] =
        ValuesOf(replica->BeginSnapshot(1, "")->Finish(), Slots::kWith);
  });
  EXPECT_EQ(values[0], values[1]);
}

// The loss and the gradients of the Dense layer are finite, but the gradient of the table is not.
// Only one rank has examples.
TEST(TableReplicas, AllRanksDecideTheSameAboutRowsThatAreNotFinite) {
  for (const config::OnNonFinite rule : {config::OnNonFinite::kSkip, config::OnNonFinite::kFail}) {
    const ModelDefinition definition = Pooled(Optimizers()[0], true);
    state::Snapshot state = InitialState(definition);
    std::ranges::fill(state.variables[0].value.data<float>(), 0.f);
    for (size_t v = 1; v < definition.variables.size(); ++v) {
      if (definition.variables[v].name == "dense/kernel")
        std::ranges::fill(state.variables[v].value.data<float>(), 1e30f);
    }
    OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
      StrategyOptions options = TableOptions(WithBatchSize(definition, 2));
      options.on_non_finite = rule;
      auto replica = *Replica::Create(std::move(options), 0);
      ASSERT_TRUE(replica->Connect(communicator).ok());
      ASSERT_TRUE(replica->Load(state).ok());
      data::Batch batch = PartOf(TableBatch(0), 0, rank == 0 ? 0 : 2);
      std::ranges::fill(batch.tensors[1].value.data<float>(), 1e10f);
      ASSERT_TRUE(replica->Compute(batch, 0, {2, 1}).ok());
      ASSERT_TRUE(replica->Reduce().ok());
      MetricTotals totals;
      const StatusOr<bool> applied = replica->Apply(0, totals);
      if (rule == config::OnNonFinite::kSkip) {
        ASSERT_TRUE(applied.ok()) << applied.status();
        EXPECT_FALSE(*applied);
      } else {
        EXPECT_TRUE(state::IsRunFailure(applied.status()));
        EXPECT_NE(Message(applied.status()).find("the gradient of embedding/embeddings contains"),
                  std::string::npos)
            << applied.status();
      }
      EXPECT_EQ(ValuesOf(replica->BeginSnapshot(0, "")->Finish(), Slots::kWith),
                ValuesOf(state, Slots::kWith));
    });
  }
}

TEST(TableReplicas, DevicesOfATaskTakeTheLazyStepsOfOneDevice) {
  optimizer::Optimizer lazy = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  lazy.lazy = true;
  const ModelDefinition definition = Pooled(lazy, true);
  const std::vector<float> expected = ValuesOf(StatesOfOneDevice(definition).back(), Slots::kWith);
  for (const VariableStorage storage : {VariableStorage::kMirrored, VariableStorage::kCentral}) {
    auto devices = *MakeWithDevices({.self = {.task_type = "chief"},
                                     .common = TableOptions(definition),
                                     .storage = storage,
                                     .devices = 3,
                                     .threads = 3});
    ASSERT_TRUE(devices->Start().ok());
    MetricTotals totals;
    for (int64_t step = 0; step < kSteps; ++step) {
      const auto outcome = devices->Step(TableBatch(step), totals);
      ASSERT_TRUE(outcome.ok()) << outcome.status();
    }
    const std::vector<float> got = ValuesOf(*devices->TakeSnapshot(), Slots::kWith);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace tfjob::strategy
