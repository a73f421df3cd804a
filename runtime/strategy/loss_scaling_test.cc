// Tests training with the dtype policies mixed_bfloat16 and mixed_float16, and the loss scale of
// mixed_float16.
#include "runtime/strategy/loss_scaling.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/keras.h"
#include "runtime/strategy/mirrored_strategy.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/parameter_server_strategy.h"
#include "runtime/strategy/replica.h"
#include "runtime/strategy/test_group.h"
#include "runtime/strategy/test_rows.h"

namespace tfjob::strategy {
namespace {

using model::DTypePolicy;

ModelDefinition Define(DTypePolicy policy) {
  ModelDefinition definition;
  const Json layers = *ParseJson(
      R"([{"Dense": {"units": 8, "activation": "tanh"}}, {"Dense": {"units": 1}}])", "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  model::SetPolicy(definition.model, policy);
  definition.build.batch_size = 8;
  definition.build.features = model::Features({2});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  definition.state.optimizer.learning_rate = 0.02;
  definition.seed = 5;
  EXPECT_EQ(DefineVariables(definition), OkStatus());
  return definition;
}

StrategyOptions Options(const ModelDefinition& definition) {
  return {.definition = definition,
          .device = exec::CpuDevice(),
          .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
            return InitialState(definition);
          }};
}

std::unique_ptr<Strategy> OneDevice(const StrategyOptions& options) {
  auto strategy = *MakeOneDevice({.task_type = "worker"}, options);
  EXPECT_TRUE(strategy->Start().ok());
  return strategy;
}

// Returns a batch whose labels are so large that the gradients overflow in float16 at the initial
// scale: the gradient of a prediction near 0 is -2 · 30 · 32768 / 8, which is beyond 65504.
data::Batch Overflowing() {
  data::Batch batch = Rows(0, 8);
  for (data::NamedTensor& tensor : batch.tensors) {
    if (tensor.name == model::kLabels) std::ranges::fill(tensor.value.data<float>(), 30.0F);
  }
  return batch;
}

double LossOf(Strategy& strategy, int64_t step) {
  MetricTotals totals;
  const StatusOr<StepOutcome> outcome = strategy.Step(Rows(step * 8, 8), totals);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_FALSE(outcome->skipped);
  return totals.loss();
}

TEST(MixedPrecision, TheLossFalls) {
  for (const DTypePolicy policy : {DTypePolicy::kMixedBFloat16, DTypePolicy::kMixedFloat16}) {
    const auto strategy = OneDevice(Options(Define(policy)));
    const double first = LossOf(*strategy, 0);
    double last = 0;
    for (int64_t step = 1; step <= 200; ++step) last = LossOf(*strategy, step);
    EXPECT_LT(last, first / 20) << model::Name(policy);
    EXPECT_EQ(strategy->TakeSnapshot()->loss_scale.has_value(),
              policy == DTypePolicy::kMixedFloat16);
  }
}

TEST(LossScaling, HalvesTheScaleAndSkipsTheStepIfAGradientOverflows) {
  const auto strategy = OneDevice(Options(Define(DTypePolicy::kMixedFloat16)));
  LossOf(*strategy, 0);
  const state::Snapshot before = *strategy->TakeSnapshot();
  EXPECT_EQ(before.loss_scale, (state::LossScale{.scale = 32768, .good_steps = 1}));
  MetricTotals totals;
  const StatusOr<StepOutcome> skipped = strategy->Step(Overflowing(), totals);
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_TRUE(skipped->skipped);
  EXPECT_EQ(skipped->global_step, 1);
  const state::Snapshot after = *strategy->TakeSnapshot();
  EXPECT_EQ(after.loss_scale, (state::LossScale{.scale = 16384, .good_steps = 0}));
  EXPECT_EQ(ValuesOf(after, Slots::kWith), ValuesOf(before, Slots::kWith));
  double scale = 16384;
  while (strategy->Step(Overflowing(), totals)->skipped) {
    scale /= 2;
    ASSERT_GT(scale, 1);
  }
  EXPECT_LT(scale, 16384);
  EXPECT_EQ(strategy->TakeSnapshot()->loss_scale,
            (state::LossScale{.scale = scale, .good_steps = 1}));
}

// A clipped infinity is finite.
TEST(LossScaling, ChecksGradientsBeforeTheyAreClipped) {
  StrategyOptions options = Options(Define(DTypePolicy::kMixedFloat16));
  options.definition.build.clipping = {.kind = optimizer::ClipKind::kValue, .limit = 0.5};
  const auto strategy = OneDevice(options);
  MetricTotals totals;
  EXPECT_TRUE(strategy->Step(Overflowing(), totals)->skipped);
  EXPECT_EQ(strategy->TakeSnapshot()->loss_scale, (state::LossScale{.scale = 16384}));
}

TEST(LossScaling, DoublesTheScaleAfterManyGoodSteps) {
  StrategyOptions options = Options(Define(DTypePolicy::kMixedFloat16));
  options.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
    state::Snapshot snapshot = InitialState(options.definition);
    snapshot.loss_scale = {.scale = 64, .good_steps = state::kGoodStepsToGrow - 2};
    return snapshot;
  };
  const auto strategy = OneDevice(options);
  LossOf(*strategy, 0);
  EXPECT_EQ(strategy->TakeSnapshot()->loss_scale,
            (state::LossScale{.scale = 64, .good_steps = state::kGoodStepsToGrow - 1}));
  LossOf(*strategy, 1);
  EXPECT_EQ(strategy->TakeSnapshot()->loss_scale, (state::LossScale{.scale = 128}));
}

// A scale that is a power of two changes no bit of the update, unless a gradient becomes too small
// or too large.
TEST(LossScaling, LeavesTheGradientsAsTheyAre) {
  std::vector<std::vector<float>> values;
  for (const double scale : {256.0, 1024.0}) {
    StrategyOptions options = Options(Define(DTypePolicy::kMixedFloat16));
    options.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
      state::Snapshot snapshot = InitialState(options.definition);
      snapshot.loss_scale = {.scale = scale};
      return snapshot;
    };
    const auto strategy = OneDevice(options);
    LossOf(*strategy, 0);
    values.push_back(ValuesOf(*strategy->TakeSnapshot(), Slots::kWith));
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST(LossScaling, EveryDeviceHasTheSameScale) {
  for (const auto storage : {VariableStorage::kMirrored, VariableStorage::kCentral}) {
    DevicesOptions options{.self = {.task_type = "worker"},
                           .common = Options(Define(DTypePolicy::kMixedFloat16)),
                           .storage = storage,
                           .devices = 2,
                           .threads = 2};
    auto strategy = MakeWithDevices(std::move(options));
    ASSERT_TRUE(strategy.ok()) << strategy.status();
    ASSERT_TRUE((*strategy)->Start().ok());
    LossOf(**strategy, 0);
    MetricTotals totals;
    const StatusOr<StepOutcome> skipped = (*strategy)->Step(Overflowing(), totals);
    ASSERT_TRUE(skipped.ok()) << skipped.status();
    EXPECT_TRUE(skipped->skipped);
    EXPECT_EQ((*strategy)->TakeSnapshot()->loss_scale, (state::LossScale{.scale = 16384}));
    LossOf(**strategy, 1);
    EXPECT_EQ((*strategy)->TakeSnapshot()->loss_scale,
              (state::LossScale{.scale = 16384, .good_steps = 1}));
  }
}

TEST(LossScaling, ARankThatTakesOverAStateTakesOverItsScale) {
  const ModelDefinition definition = Define(DTypePolicy::kMixedFloat16);
  const state::LossScale scale{.scale = 64, .good_steps = 7};
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    StrategyOptions options = Options(definition);
    options.replica = rank;
    auto replica = *Replica::Create(std::move(options), 0);
    ASSERT_EQ(replica->Connect(communicator), OkStatus());
    if (rank == 1) {
      state::Snapshot snapshot = InitialState(definition);
      snapshot.loss_scale = scale;
      ASSERT_EQ(replica->Load(snapshot), OkStatus());
    }
    ASSERT_EQ(replica->Broadcast(communicator, 1, /*receive=*/rank == 0), OkStatus());
    EXPECT_EQ(replica->BeginSnapshot(0, "")->Finish().loss_scale, scale) << rank;
  });
}

TEST(LossScaling, IsRefusedWithParameterServers) {
  ParameterServerOptions options;
  options.common = Options(Define(DTypePolicy::kMixedFloat16));
  const auto strategy = MakeParameterServer(std::move(options));
  EXPECT_TRUE(absl::IsUnimplemented(strategy.status())) << strategy.status();
  EXPECT_NE(strategy.status().message().find("mixed_bfloat16"), std::string::npos);
}

TEST(LossScale, StaysWithinItsLimits) {
  state::LossScale least{.scale = state::kLeastLossScale};
  EXPECT_EQ(least.After(/*finite=*/false).scale, state::kLeastLossScale);
  state::LossScale most{.scale = state::kMostLossScale, .good_steps = state::kGoodStepsToGrow - 1};
  EXPECT_EQ(most.After(/*finite=*/true).scale, state::kMostLossScale);
  EXPECT_TRUE(most.After(/*finite=*/true).IsValid());
}

TEST(LossScale, RefusesValuesThatNoRunWrites) {
  EXPECT_TRUE(state::LossScale().IsValid());
  for (const state::LossScale& scale :
       {state::LossScale{.scale = 0}, state::LossScale{.scale = -1}, state::LossScale{.scale = NAN},
        state::LossScale{.scale = INFINITY}, state::LossScale{.good_steps = -1},
        state::LossScale{.good_steps = state::kGoodStepsToGrow}})
    EXPECT_FALSE(scale.IsValid());
}

}  // namespace
}  // namespace tfjob::strategy
