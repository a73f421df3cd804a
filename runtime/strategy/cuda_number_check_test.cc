// Trains on a simulated GPU with batches whose numbers are not finite. The GPU checks the numbers
// before it updates variables, and the host reads only the result of the check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/model/keras.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/test_rows.h"

namespace tfjob::strategy {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::unique_ptr<Strategy> TrainsWith(
    const exec::Device& device, config::OnNonFinite rule,
    const optimizer::Optimizer& optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam)) {
  ModelDefinition definition;
  const Json layers = *ParseJson(
      R"([{"Dense": {"units": 8, "activation": "tanh"}}, {"BatchNormalization": {}},
          {"Dense": {"units": 1}}])",
      "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  definition.build.batch_size = 8;
  definition.build.features = model::Features({2});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer;
  definition.seed = 5;
  EXPECT_EQ(DefineVariables(definition), OkStatus());
  auto strategy = MakeOneDevice(
      {.task_type = "worker"},
      {.definition = definition,
       .device = device,
       .on_non_finite = rule,
       .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
         return InitialState(definition);
       }});
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_TRUE((*strategy)->Start().ok());
  return *std::move(strategy);
}

// Returns the batch of a step, with this label in all examples if it is not 0.
data::Batch BatchWith(int64_t step, float label) {
  data::Batch batch = Rows(step * 8, 8);
  for (data::NamedTensor& tensor : batch.tensors)
    if (tensor.name == model::kLabels && label != 0)
      std::ranges::fill(tensor.value.data<float>(), label);
  return batch;
}

std::vector<float> StateOf(Strategy& strategy) {
  return ValuesOf(*strategy.TakeSnapshot(), Slots::kWith);
}

TEST(CudaNumberCheck, SkipsTheBatchesThatTheCpuSkips) {
  const auto cpu = TrainsWith(exec::CpuDevice(), config::OnNonFinite::kSkip);
  const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), config::OnNonFinite::kSkip);
  for (int64_t step = 0; step < 6; ++step) {
    SCOPED_TRACE(step);
    // The square of 1e30 is infinite in float32.
    const float label = step == 2 ? NAN : step == 3 ? 1e30F : 0;
    const std::vector<float> before = StateOf(*gpu);
    MetricTotals expected_totals, totals;
    const auto expected = cpu->Step(BatchWith(step, label), expected_totals);
    const auto actual = gpu->Step(BatchWith(step, label), totals);
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status();
    EXPECT_EQ(actual->skipped, label != 0);
    EXPECT_EQ(actual->skipped, expected->skipped);
    EXPECT_EQ(actual->global_step, expected->global_step);
    EXPECT_EQ(StateOf(*gpu) == before, actual->skipped);
    if (!actual->skipped) {
      EXPECT_NEAR(totals.loss(), expected_totals.loss(), 1e-4);
    }
  }
  EXPECT_LT(Norm(StateOf(*gpu), StateOf(*cpu)), 1e-4);
}

// After the failure, the variables on the GPU still have their previous values, whereas the CPU
// would have updated them to NaN.
TEST(CudaNumberCheck, FailsBeforeAnyVariableChanges) {
  for (const auto& [label, culprit] :
       {std::pair(NAN, "the loss is NaN"), {1e30F, "the loss is infinite"}}) {
    const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), config::OnNonFinite::kFail);
    MetricTotals totals;
    ASSERT_TRUE(gpu->Step(BatchWith(0, 0), totals).ok());
    const std::vector<float> before = StateOf(*gpu);
    const Status failed = gpu->Step(BatchWith(1, label), totals).status();
    EXPECT_EQ(failed.code(), StatusCode::kOutOfRange) << failed;
    EXPECT_THAT(std::string(Message(failed)), StartsWith(StrCat("step 2: ", culprit)));
    EXPECT_EQ(StateOf(*gpu), before);
  }
}

// The loss is finite, but its gradients are not.
TEST(CudaNumberCheck, NamesAGradient) {
  const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), config::OnNonFinite::kFail);
  MetricTotals totals;
  data::Batch batch = BatchWith(0, 0);
  for (data::NamedTensor& tensor : batch.tensors)
    if (tensor.name != model::kLabels) tensor.value.data<float>()[0] = INFINITY;
  const Status failed = gpu->Step(batch, totals).status();
  EXPECT_EQ(failed.code(), StatusCode::kOutOfRange) << failed;
  EXPECT_THAT(std::string(Message(failed)),
              HasSubstr("the gradient of dense/kernel contains NaN or infinity"));
}

optimizer::Optimizer WithLargeSteps() {
  auto sgd = optimizer::Optimizer::Default(optimizer::Kind::kSgd);
  sgd.learning_rate = 1e38;
  return sgd;
}

// The loss and the gradients of the step are finite, but the updated variables are not. The CPU
// checks the variables in the step, and the GPU checks them before they are saved.
TEST(CudaNumberCheck, FindsUpdatesThatOverflow) {
  const auto rule = config::OnNonFinite::kFail;
  const auto cpu = TrainsWith(exec::CpuDevice(), rule, WithLargeSteps());
  const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), rule, WithLargeSteps());
  EXPECT_TRUE(gpu->TakeSnapshot().ok());
  MetricTotals totals;
  const Status expected = cpu->Step(BatchWith(0, 100), totals).status();
  EXPECT_EQ(expected.code(), StatusCode::kOutOfRange) << expected;
  EXPECT_THAT(std::string(Message(expected)),
              HasSubstr("contains NaN or infinity after its update"));
  ASSERT_TRUE(gpu->Step(BatchWith(0, 100), totals).ok());
  EXPECT_EQ(gpu->TakeSnapshot().status(), expected);
  EXPECT_EQ(gpu->BeginSnapshot().status(), expected);
}

// As on the CPU, only gradients are checked.
TEST(CudaNumberCheck, SavesUpdatesThatOverflowIfBatchesAreSkipped) {
  const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), config::OnNonFinite::kSkip,
                              WithLargeSteps());
  MetricTotals totals;
  ASSERT_TRUE(gpu->Step(BatchWith(0, 100), totals).ok());
  const std::vector<float> state = StateOf(*gpu);
  EXPECT_TRUE(std::ranges::any_of(state, [](float value) { return std::isinf(value); }));
}

TEST(CudaNumberCheck, MayBeDisabled) {
  const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), config::OnNonFinite::kContinue);
  MetricTotals totals;
  ASSERT_TRUE(gpu->Step(BatchWith(0, NAN), totals).ok());
  const std::vector<float> state = StateOf(*gpu);
  EXPECT_TRUE(std::ranges::any_of(state, [](float value) { return std::isnan(value); }));
}

}  // namespace
}  // namespace tfjob::strategy
