// Trains on devices that compute late: a simulated GPU and the fake device. They check for numbers
// that are not finite before they update variables, and the host reads only the result of the
// check. The steps run ahead if possible, and their totals stay on the device.
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
#include "runtime/exec/fake_device.h"
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

Status StepAndWait(Strategy& strategy, const data::Batch& batch) {
  MetricTotals totals;
  RETURN_IF_ERROR(strategy.Step(batch, totals).status());
  return strategy.TakeTotals(totals);
}

// After the failure, the variables on the GPU still have their previous values, whereas the CPU
// would have updated them to NaN.
TEST(CudaNumberCheck, FailsBeforeAnyVariableChanges) {
  for (const auto& [label, culprit] :
       {std::pair(NAN, "the loss is NaN"), {1e30F, "the loss is infinite"}}) {
    const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), config::OnNonFinite::kFail);
    ASSERT_EQ(StepAndWait(*gpu, BatchWith(0, 0)), OkStatus());
    const std::vector<float> before = StateOf(*gpu);
    const Status failed = StepAndWait(*gpu, BatchWith(1, label));
    EXPECT_EQ(failed.code(), StatusCode::kOutOfRange) << failed;
    EXPECT_THAT(std::string(Message(failed)), StartsWith(StrCat("step 2: ", culprit)));
    EXPECT_EQ(StateOf(*gpu), before);
  }
}

// The loss is finite, but its gradients are not.
TEST(CudaNumberCheck, NamesAGradient) {
  const auto gpu = TrainsWith(exec::EmulatedCudaDevice(/*seed=*/3), config::OnNonFinite::kFail);
  data::Batch batch = BatchWith(0, 0);
  for (data::NamedTensor& tensor : batch.tensors)
    if (tensor.name != model::kLabels) tensor.value.data<float>()[0] = INFINITY;
  const Status failed = StepAndWait(*gpu, batch);
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

constexpr int64_t kRunBatch = 8;

std::unique_ptr<Strategy> RunsAheadOn(const exec::Device& device,
                                      config::OnNonFinite rule = config::OnNonFinite::kFail) {
  ModelDefinition definition;
  const Json layers = *ParseJson(
      R"([{"Dense": {"units": 8, "activation": "tanh"}}, {"Dropout": {"rate": 0.2}},
          {"Dense": {"units": 1}}])",
      "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  definition.build.batch_size = kRunBatch;
  definition.build.features = model::Features({2});
  definition.build.objectives = {{.loss = {.kind = model::LossKind::kMeanSquaredError},
                                  .metrics = {model::Metric::kRootMeanSquaredError},
                                  .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
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

// Returns the batch of a step. Every third batch is smaller, so it needs a program of its own.
data::Batch BatchToRun(int64_t step) {
  return Rows(step * kRunBatch, step % 3 == 2 ? 5 : kRunBatch);
}

data::Batch BadBatchToRun(int64_t step) {
  data::Batch batch = BatchToRun(step);
  for (data::NamedTensor& tensor : batch.tensors)
    if (tensor.name == model::kLabels) tensor.value.data<float>()[0] = NAN;
  return batch;
}

std::vector<exec::Device> LateDevices() {
  std::vector<exec::Device> devices{exec::EmulatedCudaDevice(/*seed=*/3)};
  for (uint64_t seed = 1; seed <= 5; ++seed) devices.push_back(exec::FakeDevice(seed));
  return devices;
}

TEST(RunAhead, KeepsTheTotalsOnTheDevice) {
  for (const exec::Device& device : LateDevices()) {
    SCOPED_TRACE(device.name);
    const bool same_kernels = device.name == "/device:FAKE:0";
    const auto cpu = RunsAheadOn(exec::CpuDevice());
    const auto late = RunsAheadOn(device);
    for (int64_t step = 0; step < 10;) {
      MetricTotals expected, totals;
      for (const int64_t end = step + 5; step < end; ++step) {
        ASSERT_TRUE(cpu->Step(BatchToRun(step), expected).ok());
        const auto outcome = late->Step(BatchToRun(step), totals);
        ASSERT_TRUE(outcome.ok()) << outcome.status();
        EXPECT_EQ(outcome->global_step, step + 1);
        EXPECT_EQ(outcome->drawn, step + 1);
        EXPECT_EQ(totals.examples, 0);
      }
      ASSERT_EQ(late->TakeTotals(totals), OkStatus());
      ASSERT_EQ(late->TakeTotals(totals), OkStatus()) << "nothing more";
      EXPECT_EQ(totals.examples, expected.examples);
      ASSERT_EQ(totals.metric_sums.size(), expected.metric_sums.size());
      // Sums of float32 values in float64 have the same bits in both places.
      const double tolerance = same_kernels ? 0 : 1e-4;
      EXPECT_NEAR(totals.loss_sum, expected.loss_sum, tolerance);
      for (size_t i = 0; i < totals.metric_sums.size(); ++i)
        EXPECT_NEAR(totals.metric_sums[i], expected.metric_sums[i], tolerance);
    }
    if (same_kernels) EXPECT_EQ(StateOf(*late), StateOf(*cpu));
    EXPECT_LT(Norm(StateOf(*late), StateOf(*cpu)), 1e-3);
  }
}

// The steps after a bad one have been submitted before its error is known. They must not change
// anything, and the error must name the bad one.
TEST(RunAhead, NamesTheExactStepAndGoesBackToIt) {
  for (const exec::Device& device : LateDevices()) {
    SCOPED_TRACE(device.name);
    const auto late = RunsAheadOn(device), good = RunsAheadOn(device);
    MetricTotals totals, expected;
    ASSERT_TRUE(late->Step(BatchToRun(0), totals).ok());
    ASSERT_TRUE(late->Step(BadBatchToRun(1), totals).ok());
    const Status failed = late->TakeTotals(totals);
    EXPECT_EQ(failed.code(), StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(Message(failed)), StartsWith("step 2: the loss is NaN"));

    ASSERT_TRUE(good->Step(BatchToRun(0), expected).ok());
    EXPECT_EQ(StateOf(*late), StateOf(*good));
    ASSERT_TRUE(late->Step(BadBatchToRun(1), totals).ok());
    const StatusOr<StepOutcome> later = late->Step(BatchToRun(3), totals);
    ASSERT_TRUE(later.ok()) << later.status();
    EXPECT_EQ(late->Step(BatchToRun(4), totals).status(), failed);
    EXPECT_EQ(late->TakeSnapshot()->global_step, 1);
    EXPECT_EQ(StateOf(*late), StateOf(*good)) << "the step after the bad one has changed it";

    const auto again = late->Step(BatchToRun(1), totals);
    ASSERT_TRUE(again.ok() && good->Step(BatchToRun(1), expected).ok());
    EXPECT_EQ(again->global_step, 2);
    EXPECT_EQ(again->drawn, 2);
    EXPECT_EQ(late->TakeTotals(totals), OkStatus());
    EXPECT_EQ(good->TakeTotals(expected), OkStatus());
    EXPECT_EQ(totals.loss_sum, expected.loss_sum) << "without the bad batches";
    EXPECT_EQ(totals.examples, 2 * kRunBatch);
    EXPECT_EQ(StateOf(*late), StateOf(*good));
  }
}

TEST(RunAhead, ReportsTheErrorBeforeItSavesTheState) {
  for (const exec::Device& device : LateDevices()) {
    const auto late = RunsAheadOn(device);
    MetricTotals totals;
    ASSERT_TRUE(late->Step(BadBatchToRun(0), totals).ok());
    EXPECT_EQ(late->BeginSnapshot().status().code(), StatusCode::kOutOfRange);
    ASSERT_TRUE(late->Step(BadBatchToRun(0), totals).ok());
    EXPECT_EQ(late->SetLearningRate(0.5).code(), StatusCode::kOutOfRange);
    EXPECT_EQ(late->TakeSnapshot()->global_step, 0);
  }
}

TEST(RunAhead, StartsAnewFromAGivenState) {
  for (const exec::Device& device : LateDevices()) {
    const auto late = RunsAheadOn(device);
    MetricTotals totals, expected;
    ASSERT_TRUE(late->Step(BatchToRun(0), totals).ok());
    ASSERT_TRUE(late->Step(BadBatchToRun(1), totals).ok());
    const auto started = late->Start();
    ASSERT_TRUE(started.ok()) << started.status();
    EXPECT_EQ(started->global_step, 0);
    EXPECT_EQ(late->TakeTotals(totals), OkStatus());
    EXPECT_EQ(totals.examples, 0);
    EXPECT_EQ(totals.loss_sum, 0);
  }
}

// The number of a step depends on whether the batch before was skipped.
TEST(RunAhead, NeedsToKnowThatNoBatchIsSkipped) {
  const auto late = RunsAheadOn(exec::FakeDevice(1), config::OnNonFinite::kSkip);
  MetricTotals totals;
  ASSERT_TRUE(late->Step(BatchToRun(0), totals).ok());
  EXPECT_EQ(totals.examples, kRunBatch);
  EXPECT_TRUE(late->Step(BadBatchToRun(1), totals)->skipped);
  EXPECT_EQ(late->TakeTotals(totals), OkStatus());
  EXPECT_EQ(totals.examples, kRunBatch);
}

TEST(RunAhead, ReportsNaNIfTheRunContinues) {
  for (const exec::Device& device : LateDevices()) {
    const auto late = RunsAheadOn(device, config::OnNonFinite::kContinue);
    MetricTotals first, second;
    ASSERT_TRUE(late->Step(BadBatchToRun(0), first).ok());
    EXPECT_EQ(late->TakeTotals(first), OkStatus());
    EXPECT_TRUE(std::isnan(first.loss_sum));
    EXPECT_EQ(late->TakeTotals(second), OkStatus());
    EXPECT_EQ(second.loss_sum, 0);
  }
}

}  // namespace
}  // namespace tfjob::strategy
