// Trains with a scaled loss on a simulated GPU, and compares the steps with steps on the CPU.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/model/keras.h"
#include "runtime/strategy/loss_scaling.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/test_rows.h"

namespace tfjob::strategy {
namespace {

std::unique_ptr<Strategy> TrainsOn(const exec::Device& device, optimizer::ClipKind clip) {
  ModelDefinition definition;
  const Json layers = *ParseJson(
      R"([{"Dense": {"units": 8, "activation": "tanh"}}, {"BatchNormalization": {}},
          {"Dense": {"units": 1}}])",
      "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  model::SetPolicy(definition.model, model::DTypePolicy::kMixedFloat16);
  definition.build.batch_size = 8;
  definition.build.features = model::Features({2});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.build.clipping = {.kind = clip, .limit = 0.5};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  definition.seed = 5;
  EXPECT_EQ(DefineVariables(definition), OkStatus());
  auto strategy = MakeOneDevice(
      {.task_type = "worker"},
      {.definition = definition,
       .device = device,
       .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
         return InitialState(definition);
       }});
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_TRUE((*strategy)->Start().ok());
  return *std::move(strategy);
}

// Returns the batch of a step. In steps 2 and 3, some gradients overflow in float16; in step 5, the
// loss is infinite.
data::Batch BatchOf(int64_t step) {
  data::Batch batch = Rows(step * 8, 8);
  const float label = step == 5 ? INFINITY : 30.0F;
  for (data::NamedTensor& tensor : batch.tensors) {
    if (tensor.name == model::kLabels && (step == 2 || step == 3 || step == 5))
      std::ranges::fill(tensor.value.data<float>(), label);
  }
  return batch;
}

struct Stepped {
  bool skipped = false;
  double loss = 0;
  state::Snapshot state;
};

Stepped StepOf(Strategy& strategy, int64_t step) {
  MetricTotals totals;
  const StatusOr<StepOutcome> outcome = strategy.Step(BatchOf(step), totals);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return {outcome.ok() && outcome->skipped, totals.loss(), *strategy.TakeSnapshot()};
}

TEST(CudaLossScaling, SkipsTheStepsThatTheCpuSkips) {
  for (const auto clip : {optimizer::ClipKind::kNone, optimizer::ClipKind::kValue}) {
    const auto cpu = TrainsOn(exec::CpuDevice(), clip);
    const auto gpu = TrainsOn(exec::EmulatedCudaDevice(/*seed=*/3), clip);
    std::vector<float> before = ValuesOf(*gpu->TakeSnapshot(), Slots::kWith);
    double scale = 32768;
    for (int64_t step = 0; step < 7; ++step) {
      SCOPED_TRACE(step);
      const Stepped expected = StepOf(*cpu, step), actual = StepOf(*gpu, step);
      EXPECT_EQ(actual.skipped, step == 2 || step == 3 || step == 5);
      EXPECT_EQ(actual.skipped, expected.skipped);
      EXPECT_EQ(actual.state.loss_scale, expected.state.loss_scale);
      if (step == 2 || step == 3) scale /= 2;
      EXPECT_EQ(actual.state.loss_scale->scale, scale);
      const std::vector<float> values = ValuesOf(actual.state, Slots::kWith);
      EXPECT_EQ(values == before, actual.skipped);
      before = values;
      if (actual.skipped) continue;
      EXPECT_NEAR(actual.loss, expected.loss, 0x1p-10 * expected.loss);
      EXPECT_LT(Norm(values, ValuesOf(expected.state, Slots::kWith)),
                2e-3 * Norm(values, std::vector<float>(values.size())));
    }
  }
}

}  // namespace
}  // namespace tfjob::strategy
