// Compares replicas, whose ranks are threads, with one device that processes the whole global
// batch.
#include "runtime/strategy/replica.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/model/keras.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/test_group.h"
#include "runtime/strategy/test_rows.h"

namespace tfjob::strategy {
namespace {

constexpr char kTwoLayers[] =
    R"([{"Dense": {"units": 4, "activation": "tanh", "kernel_regularizer": "l2"}},
        {"Dense": {"units": 1}}])";
constexpr char kNormalised[] =
    R"([{"Dense": {"units": 4}}, {"BatchNormalization": {}}, {"Dense": {"units": 1}}])";

ModelDefinition Define(const char* layers, int64_t batch, optimizer::Clipping clipping = {}) {
  ModelDefinition definition;
  const Json json = *ParseJson(layers, "layers");
  definition.model = *model::ReadLayers(JsonField(json, "model.layers"));
  definition.build.batch_size = batch;
  definition.build.features = model::Features({2});
  definition.build.objectives = {{.loss = {.kind = model::LossKind::kMeanSquaredError},
                                  .metrics = {model::LossKind::kMeanSquaredError},
                                  .labels = {DType::kFloat32, {}}}};
  definition.build.clipping = clipping;
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  definition.state.optimizer.learning_rate = 0.01;
  definition.seed = 5;
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

StrategyOptions Options(const ModelDefinition& definition, int rank = 0) {
  return {.definition = definition,
          .device = exec::CpuDevice(),
          .replica = rank,
          .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
            return InitialState(definition);
          }};
}

// The sizes of the parts of a global batch, by rank.
using Parts = std::vector<int64_t>;

Status Step(Replica& replica, const Parts& parts, int rank, int64_t step, MetricTotals& totals) {
  int64_t first = step * 1000, examples = 0, with = 0;
  for (size_t r = 0; r < parts.size(); ++r) {
    if (static_cast<int>(r) < rank) first += parts[r];
    examples += parts[r];
    with += parts[r] > 0 ? 1 : 0;
  }
  const data::Batch batch = Rows(first, parts[static_cast<size_t>(rank)]);
  RETURN_IF_ERROR(replica.Compute(batch, step, {examples, with}));
  RETURN_IF_ERROR(replica.Reduce());
  return replica.Apply(step, totals).status();
}

// Trains replicas. Each step starts from the state of the single device, so that differences do not
// accumulate. Expects each update to equal that of the single device.
void ExpectEqualUpdates(const char* layers, const Parts& parts, optimizer::Clipping clipping = {}) {
  constexpr int64_t kSteps = 100;
  int64_t size = 0;
  for (const int64_t part : parts) size += part;
  const ModelDefinition definition = Define(layers, size, clipping);
  auto one = *MakeOneDevice({.task_type = "worker"}, Options(definition));
  ASSERT_TRUE(one->Start().ok());
  std::vector<state::Snapshot> states{*one->TakeSnapshot()};
  std::vector<double> losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    MetricTotals totals;
    ASSERT_TRUE(one->Step(Rows(step * 1000, size), totals).ok());
    losses.push_back(totals.loss());
    states.push_back(*one->TakeSnapshot());
  }
  OnEveryRank(parts.size(), [&](int rank, collectives::Communicator& communicator) {
    auto replica = *Replica::Create(
        Options(Define(layers, parts[static_cast<size_t>(rank)], clipping), rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    for (int64_t step = 0; step < kSteps; ++step) {
      const auto at = static_cast<size_t>(step);
      ASSERT_TRUE(replica->Load(states[at]).ok());
      MetricTotals totals;
      ASSERT_EQ(Step(*replica, parts, rank, step, totals), OkStatus());
      EXPECT_EQ(totals.examples, size);
      EXPECT_NEAR(totals.loss(), losses[at], 1e-5 * losses[at]);
      const std::vector<float> before = ValuesOf(states[at], Slots::kWithout),
                               expected = ValuesOf(states[at + 1], Slots::kWithout);
      const std::vector<float> actual =
          ValuesOf(replica->BeginSnapshot(step + 1, "")->Finish(), Slots::kWithout);
      ASSERT_LE(Norm(actual, expected), 1e-5 * Norm(before, expected)) << "step " << step;
    }
  });
}

TEST(Replica, TwoHalvesEqualTheWholeBatch) {
  ExpectEqualUpdates(kTwoLayers, {8, 8});
}

TEST(Replica, UnevenAndEmptyPartsEqualTheWholeBatch) {
  ExpectEqualUpdates(kTwoLayers, {4, 3});
  ExpectEqualUpdates(kTwoLayers, {3, 2, 0});
  ExpectEqualUpdates(kTwoLayers, {1, 0});
}

TEST(Replica, FourRanksEqualOneDevice) {
  ExpectEqualUpdates(kTwoLayers, {3, 3, 3, 2});
}

// Trains for the same number of steps without resetting the state, so differences may accumulate.
void ExpectEqualLosses(const char* layers, const Parts& parts) {
  constexpr int64_t kSteps = 100;
  const int64_t size = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  const ModelDefinition definition = Define(layers, size);
  auto one = *MakeOneDevice({.task_type = "worker"}, Options(definition));
  ASSERT_TRUE(one->Start().ok());
  std::vector<double> losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    MetricTotals totals;
    ASSERT_TRUE(one->Step(Rows(step * 1000, size), totals).ok());
    losses.push_back(totals.loss());
  }
  OnEveryRank(parts.size(), [&](int rank, collectives::Communicator& communicator) {
    auto replica =
        *Replica::Create(Options(Define(layers, parts[static_cast<size_t>(rank)]), rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    for (int64_t step = 0; step < kSteps; ++step) {
      const double expected = losses[static_cast<size_t>(step)];
      MetricTotals totals;
      ASSERT_EQ(Step(*replica, parts, rank, step, totals), OkStatus());
      EXPECT_NEAR(totals.loss(), expected, 1e-4 * expected) << "step " << step;
    }
  });
}

TEST(Replica, TheLossStaysThatOfOneDevice) {
  for (const Parts& parts : {Parts{8, 8}, {4, 3}, {1, 0}, {3, 3, 3, 2}, {1, 1, 1, 0}})
    ExpectEqualLosses(kTwoLayers, parts);
}

TEST(Replica, ClipsTheMeanOfTheGradients) {
  ExpectEqualUpdates(kTwoLayers, {5, 3}, {optimizer::ClipKind::kGlobalNorm, 0.05});
  ExpectEqualUpdates(kTwoLayers, {5, 3}, {optimizer::ClipKind::kValue, 0.01});
}

TEST(Replica, AllRanksHoldTheSameBits) {
  std::vector<std::vector<float>> values(3);
  const Parts parts = {4, 3, 0};
  OnEveryRank(3, [&](int rank, collectives::Communicator& communicator) {
    const auto at = static_cast<size_t>(rank);
    const ModelDefinition definition = Define(kNormalised, parts[at]);
    auto replica = *Replica::Create(Options(definition, rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    MetricTotals totals;
    for (int64_t step = 0; step < 20; ++step)
      ASSERT_EQ(Step(*replica, parts, rank, step, totals), OkStatus());
    values[at] = ValuesOf(replica->BeginSnapshot(20, "")->Finish(), Slots::kWith);
  });
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
}

// A moving mean starts at 0 and becomes momentum · 0 + (1 - momentum) · (mean of the batch).
TEST(Replica, AveragesMovingStatisticsOverRanksWithExamples) {
  const ModelDefinition definition =
      Define(R"([{"BatchNormalization": {"momentum": 0.5}}, {"Dense": {"units": 1}}])", 2);
  const Parts parts = {2, 2, 0};
  OnEveryRank(3, [&](int rank, collectives::Communicator& communicator) {
    auto replica = *Replica::Create(Options(definition, rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    MetricTotals totals;
    ASSERT_EQ(Step(*replica, parts, rank, 0, totals), OkStatus());
    const data::Batch all = Rows(0, 4);
    const auto x = all.tensors[0].value.data<float>();
    const state::Snapshot after = replica->BeginSnapshot(1, "")->Finish();
    for (size_t v = 0; v < definition.variables.size(); ++v) {
      if (definition.variables[v].name != "batch_normalization/moving_mean") continue;
      const float mean = (x[0] + x[2] + x[4] + x[6]) / 4;
      EXPECT_NEAR(after.variables[v].value.data<float>()[0], 0.5 * mean, 1e-6);
      return;
    }
    ADD_FAILURE() << "the model has no moving mean";
  });
}

TEST(Replica, BroadcastsItsState) {
  const ModelDefinition definition = Define(kTwoLayers, 4);
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    auto replica = *Replica::Create(Options(definition, rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    if (rank == 1) {
      ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    }
    ASSERT_TRUE(replica->Broadcast(communicator, 1, /*receive=*/rank == 0).ok());
    EXPECT_EQ(ValuesOf(replica->BeginSnapshot(0, "")->Finish(), Slots::kWith),
              ValuesOf(InitialState(definition), Slots::kWith));
  });
}

// Programs of different batch sizes compute their contributions in the same memory, which moves
// when the replica connects to another communicator.
TEST(Replica, SharesTheMemoryOfTheBucketsAmongItsPrograms) {
  const ModelDefinition definition = Define(kNormalised, 4);
  const std::vector<Parts> steps = {{4, 4}, {2, 3}, {4, 4}, {1, 4}, {0, 2}, {4, 4}};
  std::vector<std::vector<float>> values(4);
  for (const bool reconnects : {false, true}) {
    const size_t first = reconnects ? 2 : 0;
    std::vector<std::shared_ptr<Meeting>> meetings;
    for (size_t i = 0; i < steps.size(); ++i) meetings.push_back(std::make_shared<Meeting>(2));
    OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
      auto replica = *Replica::Create(Options(definition, rank), 0);
      ASSERT_TRUE(replica->Connect(communicator).ok());
      ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
      MetricTotals totals;
      for (size_t i = 0; i < steps.size(); ++i) {
        MeetingCommunicator next(meetings[i], rank);
        if (reconnects) {
          ASSERT_TRUE(replica->Connect(next).ok());
        }
        ASSERT_EQ(Step(*replica, steps[i], rank, static_cast<int64_t>(i), totals), OkStatus());
        if (reconnects) {
          ASSERT_TRUE(next.Barrier().ok());
          replica->Disconnect();
        }
      }
      values[first + static_cast<size_t>(rank)] =
          ValuesOf(replica->BeginSnapshot(6, "")->Finish(), Slots::kWith);
    });
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
  EXPECT_EQ(values[0], values[3]);
}

// The first bad variable, in the model's order, is named, although its contribution arrives last.
TEST(Replica, NamesTheVariableWhoseSumIsNotFinite) {
  ModelDefinition definition = Define(kTwoLayers, 2);
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    StrategyOptions options = Options(definition, rank);
    options.on_non_finite = config::OnNonFinite::kFail;
    auto replica = *Replica::Create(std::move(options), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    data::Batch batch = Rows(0, 2);
    // Saturates the hidden layer, so that the loss stays finite. The gradient of the first kernel
    // is 0·∞.
    if (rank == 1) batch.tensors[0].value.data<float>()[0] = INFINITY;
    ASSERT_TRUE(replica->Compute(batch, 6, {4, 2}).ok());
    ASSERT_TRUE(replica->Reduce().ok());
    MetricTotals totals;
    const StatusOr<bool> applied = replica->Apply(6, totals);
    EXPECT_TRUE(state::IsRunFailure(applied.status()));
    const std::string expected =
        "step 7: the gradient of dense/kernel contains NaN or infinity: lower";
    EXPECT_EQ(Message(applied.status()).substr(0, expected.size()), expected);
  });
}

// Expects the padding between the two variables of a Dense layer with two inputs and one unit to be
// zero in every AllReduce.
class PaddingCheck : public MeetingCommunicator {
 public:
  using MeetingCommunicator::MeetingCommunicator;
  Status AllReduce(std::span<std::byte> values, DType dtype,
                   collectives::Reduction reduction) override {
    if (dtype == DType::kFloat32) {
      EXPECT_EQ(values.size(), 2 * kBucketAlignment);
      const size_t ends[] = {sizeof(float), kBucketAlignment + 2 * sizeof(float)};
      const size_t begins[] = {kBucketAlignment, 2 * kBucketAlignment};
      for (size_t i = 0; i < 2; ++i) {
        for (size_t at = ends[i]; at < begins[i]; ++at) EXPECT_EQ(values[at], std::byte{0}) << at;
      }
    }
    return MeetingCommunicator::AllReduce(values, dtype, reduction);
  }
};

TEST(Replica, ThePaddingOfBucketsIsZeroAfterABroadcast) {
  const ModelDefinition definition = Define(R"([{"Dense": {"units": 1}}])", 2);
  auto meeting = std::make_shared<Meeting>(1);
  PaddingCheck communicator(meeting, 0);
  auto replica = *Replica::Create(Options(definition), 0);
  ASSERT_TRUE(replica->Connect(communicator).ok());
  ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
  MetricTotals totals;
  ASSERT_EQ(Step(*replica, {2}, 0, 0, totals), OkStatus());
  ASSERT_TRUE(replica->Broadcast(communicator, 0, /*receive=*/false).ok());
  ASSERT_EQ(Step(*replica, {2}, 0, 1, totals), OkStatus());
}

// A rank that takes over the state of another rank also takes over the count of skipped batches,
// and continues to count from there.
TEST(Replica, BroadcastsHowManyBatchesWereSkippedInARow) {
  const ModelDefinition definition = Define(kTwoLayers, 2);
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    StrategyOptions options = Options(definition, rank);
    options.on_non_finite = config::OnNonFinite::kSkip;
    auto replica = *Replica::Create(std::move(options), 0);
    data::Batch bad = Rows(0, 2);
    bad.tensors[0].value.data<float>()[0] = NAN;
    MetricTotals totals;
    const auto skip = [&](int ranks) -> StatusOr<bool> {
      RETURN_IF_ERROR(replica->Compute(bad, 0, {2 * ranks, ranks}));
      RETURN_IF_ERROR(replica->Reduce());
      return replica->Apply(0, totals);
    };
    if (rank == 0) {
      MeetingCommunicator alone(std::make_shared<Meeting>(1), 0);
      ASSERT_TRUE(replica->Connect(alone).ok());
      ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
      for (int i = 0; i < kMaxSkippedInARow - 1; ++i) ASSERT_FALSE(*skip(1));
      replica->Disconnect();
    }
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Broadcast(communicator, 0, /*receive=*/rank == 1).ok());
    ASSERT_FALSE(*skip(2));
    EXPECT_TRUE(state::IsRunFailure(skip(2).status())) << "rank " << rank;
  });
}

// Only one rank has the bad number, but all ranks must skip the batch, or all must fail.
TEST(Replica, AllRanksDecideTheSameAboutNumbersThatAreNotFinite) {
  for (const config::OnNonFinite rule : {config::OnNonFinite::kSkip, config::OnNonFinite::kFail}) {
    const ModelDefinition definition = Define(kTwoLayers, 2);
    std::vector<Status> results(2);
    std::vector<int> skipped(2);
    OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
      const auto at = static_cast<size_t>(rank);
      StrategyOptions options = Options(definition, rank);
      options.on_non_finite = rule;
      auto replica = *Replica::Create(std::move(options), 0);
      ASSERT_TRUE(replica->Connect(communicator).ok());
      ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
      data::Batch batch = Rows(0, 2);
      if (rank == 1) batch.tensors[0].value.data<float>()[0] = NAN;
      ASSERT_TRUE(replica->Compute(batch, 0, {4, 2}).ok());
      ASSERT_TRUE(replica->Reduce().ok());
      MetricTotals totals;
      const StatusOr<bool> applied = replica->Apply(0, totals);
      results[at] = applied.status();
      skipped[at] = applied.ok() && !*applied ? 1 : 0;
      EXPECT_EQ(totals.examples, 0);
      EXPECT_EQ(ValuesOf(replica->BeginSnapshot(0, "")->Finish(), Slots::kWithout),
                ValuesOf(InitialState(definition), Slots::kWithout));
    });
    const bool fails = rule == config::OnNonFinite::kFail;
    EXPECT_EQ(state::IsRunFailure(results[0]), fails) << results[0];
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(skipped[0], fails ? 0 : 1);
    EXPECT_EQ(skipped[1], fails ? 0 : 1);
  }
}

TEST(Replica, AFailedProgramAbortsTheOthers) {
  const ModelDefinition definition = Define(kTwoLayers, 2);
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    auto replica = *Replica::Create(Options(definition, rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    data::Batch batch = Rows(0, 2);
    if (rank == 1) batch.tensors.pop_back();  // no labels
    const Status computed = replica->Compute(batch, 0, {4, 2});
    EXPECT_EQ(computed.ok(), rank == 0);
    if (rank == 0) {
      EXPECT_FALSE(replica->Reduce().ok());
    }
    EXPECT_EQ(ValuesOf(replica->BeginSnapshot(0, "")->Finish(), Slots::kWithout),
              ValuesOf(InitialState(definition), Slots::kWithout));
  });
}

TEST(Replica, NamesWhatAllReduceCannotTrain) {
  ModelDefinition definition = Define(kTwoLayers, 2);
  definition.build.objectives[0].loss.sum = true;
  EXPECT_EQ(Message(Replica::Create(Options(definition), 0).status()).substr(0, 19),
            "loss.reduction: sum");
}

}  // namespace
}  // namespace tfjob::strategy
