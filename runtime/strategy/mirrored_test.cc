// Compares training on several devices of one task with training on one device that processes the
// whole batch.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/collectives/communicator.h"
#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/device_threads.h"
#include "runtime/strategy/mirrored_strategy.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/test_rows.h"

namespace tfjob::strategy {
namespace {

constexpr char kTwoLayers[] =
    R"([{"Dense": {"units": 4, "activation": "tanh", "kernel_regularizer": "l2"}},
        {"Dense": {"units": 1}}])";
constexpr char kNormalised[] =
    R"([{"BatchNormalization": {"momentum": 0.5}}, {"Dense": {"units": 1}}])";

ModelDefinition Define(const char* layers, int64_t batch, DType features = DType::kFloat32) {
  ModelDefinition definition;
  const Json json = *ParseJson(layers, "layers");
  definition.model = *model::ReadLayers(JsonField(json, "model.layers"));
  definition.build.batch_size = batch;
  definition.build.features = {{features, {2}}};
  definition.build.objectives = {{.loss = {.kind = model::LossKind::kMeanSquaredError},
                                  .metrics = {model::LossKind::kMeanSquaredError},
                                  .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  definition.state.optimizer.learning_rate = 0.01;
  definition.seed = 5;
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

StrategyOptions Options(const ModelDefinition& definition) {
  return {.definition = definition,
          .device = exec::CpuDevice(),
          .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
            return InitialState(definition);
          }};
}

DevicesOptions With(int devices, StrategyOptions common,
                    VariableStorage storage = VariableStorage::kMirrored) {
  return {.self = {.task_type = "worker"},
          .common = std::move(common),
          .storage = storage,
          .devices = devices,
          .threads = devices};
}

std::vector<float> ValueOf(const ModelDefinition& definition, const state::Snapshot& snapshot,
                           const std::string& name) {
  for (size_t v = 0; v < definition.variables.size(); ++v) {
    if (definition.variables[v].name != name) continue;
    const auto values = snapshot.variables[v].value.data<float>();
    return {values.begin(), values.end()};
  }
  ADD_FAILURE() << "no variable " << name;
  return {};
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

// Takes 100 steps with batches of changing sizes. Each step starts from the state of the single
// device, so that differences do not accumulate. Expects each update, loss and metric to equal that
// of the single device.
void ExpectTheStepsOfOneDevice(int devices, VariableStorage storage) {
  const ModelDefinition definition = Define(kTwoLayers, 7);
  auto one = *MakeOneDevice({.task_type = "worker"}, Options(definition));
  ASSERT_TRUE(one->Start().ok());
  state::Snapshot now = *one->TakeSnapshot();
  StrategyOptions options = Options(definition);
  options.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> { return now; };
  auto several = MakeWithDevices(With(devices, options, storage));
  ASSERT_TRUE(several.ok()) << several.status();
  for (int64_t step = 0; step < 100; ++step) {
    // The sizes lead to equal parts, unequal parts, and parts without examples.
    const int64_t size = std::array{7, 6, 1, 2}[static_cast<size_t>(step % 4)];
    ASSERT_TRUE((*several)->Start().ok());
    MetricTotals expected, actual;
    ASSERT_TRUE(one->Step(Rows(step * 10, size), expected).ok());
    const StatusOr<StepOutcome> outcome = (*several)->Step(Rows(step * 10, size), actual);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->global_step, step + 1);
    EXPECT_EQ(outcome->drawn, step + 1);
    EXPECT_EQ(actual.examples, size);
    EXPECT_NEAR(actual.loss(), expected.loss(), 1e-5 * expected.loss());
    ASSERT_EQ(actual.metric_sums.size(), 1u);
    EXPECT_NEAR(actual.metric_sums[0], expected.metric_sums[0], 1e-5 * expected.metric_sums[0]);
    const std::vector<float> before = ValuesOf(now, Slots::kWithout);
    now = *one->TakeSnapshot();
    const std::vector<float> after = ValuesOf(now, Slots::kWithout);
    ASSERT_LE(Distance(ValuesOf(*(*several)->TakeSnapshot(), Slots::kWithout), after),
              1e-5 * Distance(before, after))
        << "step " << step;
  }
}

TEST(Mirrored, TakesTheStepsOfOneDevice) {
  for (const int devices : {1, 2, 3}) {
    ExpectTheStepsOfOneDevice(devices, VariableStorage::kMirrored);
  }
}

TEST(CentralStorage, TakesTheStepsOfOneDevice) {
  for (const int devices : {1, 2, 3}) {
    ExpectTheStepsOfOneDevice(devices, VariableStorage::kCentral);
  }
}

// Takes three steps, from the given one.
void ThreeSteps(Strategy& strategy, int64_t from) {
  MetricTotals totals;
  for (int64_t step = from; step < from + 3; ++step)
    ASSERT_TRUE(strategy.Step(Rows(step * 10, 7), totals).ok());
}

// Expects a new rate to have the same effect as compiling the optimizer with it, bit for bit, and
// to be part of the state.
void ExpectToChangeTheRate(
    const std::function<std::unique_ptr<Strategy>(const StrategyOptions&)>& make) {
  ModelDefinition definition = Define(kTwoLayers, 7);
  state::Snapshot middle;
  const auto made = [&](const state::Snapshot* from) {
    StrategyOptions options = Options(definition);
    if (from != nullptr) options.provide_state = [=](const state::Snapshot*) { return *from; };
    auto strategy = make(options);
    EXPECT_TRUE(strategy->Start().ok());
    return strategy;
  };
  const auto changed = made(nullptr);
  ThreeSteps(*changed, 0);
  EXPECT_EQ(changed->learning_rate(), std::nullopt);
  middle = *changed->TakeSnapshot();
  EXPECT_EQ(changed->SetLearningRate(-1).code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(changed->SetLearningRate(0.002), OkStatus());
  const state::LearningRate expected{.rate = 0.002, .step = 3};
  EXPECT_EQ(changed->learning_rate(), expected);
  ThreeSteps(*changed, 3);
  const state::Snapshot last = *changed->TakeSnapshot();
  EXPECT_EQ(last.learning_rate, expected);

  definition.state.optimizer.learning_rate = 0.002;
  const auto compiled = made(&middle);
  ThreeSteps(*compiled, 3);
  EXPECT_EQ(ValuesOf(*compiled->TakeSnapshot(), Slots::kWith), ValuesOf(last, Slots::kWith));

  definition.state.optimizer.learning_rate = 0.01;
  middle.learning_rate = expected;
  const auto restored = made(&middle);
  EXPECT_EQ(restored->learning_rate(), expected);
  ThreeSteps(*restored, 3);
  EXPECT_EQ(ValuesOf(*restored->TakeSnapshot(), Slots::kWith), ValuesOf(last, Slots::kWith));

  definition.state.optimizer.schedule.decay = optimizer::Decay::kExponential;
  definition.state.optimizer.schedule.decay_steps = 10;
  definition.state.optimizer.schedule.decay_rate = 0.5;
  const auto scheduled = made(&middle);
  EXPECT_EQ(scheduled->learning_rate(), std::nullopt) << "the schedule determines the rate";
  EXPECT_EQ(scheduled->SetLearningRate(0.5).code(), StatusCode::kFailedPrecondition);
}

TEST(SetLearningRate, OfDevicesIsLikeCompilingWithTheRate) {
  for (const auto on_non_finite : {config::OnNonFinite::kFail, config::OnNonFinite::kSkip}) {
    ExpectToChangeTheRate([&](StrategyOptions options) {
      options.on_non_finite = on_non_finite;
      return *MakeOneDevice({.task_type = "worker"}, std::move(options));
    });
  }
  for (const auto storage : {VariableStorage::kMirrored, VariableStorage::kCentral}) {
    ExpectToChangeTheRate([&](const StrategyOptions& options) {
      return *MakeWithDevices(With(2, options, storage));
    });
  }
}

// Returns variables and slots after 20 steps. If one copy of the variables drifted from the others,
// the gradients that are computed from it would change the result.
std::vector<float> Trained(const char* layers, DevicesOptions options) {
  options.common = Options(Define(layers, 7));
  auto strategy = *MakeWithDevices(std::move(options));
  EXPECT_TRUE(strategy->Start().ok());
  MetricTotals totals;
  for (int64_t step = 0; step < 20; ++step) {
    const auto outcome = strategy->Step(Rows(step * 10, step % 5 == 4 ? 2 : 7), totals);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
  }
  return ValuesOf(*strategy->TakeSnapshot(), Slots::kWith);
}

TEST(CentralStorage, TakesTheStepsOfMirroredBitForBit) {
  for (const char* layers : {kTwoLayers, kNormalised}) {
    EXPECT_EQ(Trained(layers, With(3, {}, VariableStorage::kCentral)),
              Trained(layers, With(3, {}, VariableStorage::kMirrored)));
  }
}

TEST(Mirrored, NeitherThreadsNorPacksChangeTheResult) {
  const std::vector<float> values = Trained(kTwoLayers, With(3, {}));
  DevicesOptions options = With(3, {});
  options.threads = 1;
  EXPECT_EQ(Trained(kTwoLayers, options), values);
  options.threads = 5;
  options.bytes_per_pack = 1;
  EXPECT_EQ(Trained(kTwoLayers, options), values);
}

// The moving mean becomes 0.5 · old + 0.5 · the mean over the devices that have examples.
TEST(Mirrored, MovingStatisticsAreTheMeanOverDevicesWithExamples) {
  const ModelDefinition definition = Define(kNormalised, 7);
  for (const VariableStorage storage : {VariableStorage::kMirrored, VariableStorage::kCentral}) {
    auto strategy = *MakeWithDevices(With(3, Options(definition), storage));
    ASSERT_TRUE(strategy->Start().ok());
    std::vector<double> expected(2, 0);
    for (const int64_t size : {7, 2}) {
      const data::Batch batch = Rows(size, size);
      std::vector<double> mean(2, 0);
      const int64_t with = std::min<int64_t>(size, 3);
      for (int device = 0; device < 3; ++device) {
        const auto part = collectives::SliceOf(size, device, 3);
        for (int64_t row = part.begin; row < part.begin + part.count; ++row) {
          for (size_t i = 0; i < 2; ++i) {
            mean[i] += batch.tensors[0].value.data<float>()[2 * static_cast<size_t>(row) + i] /
                       static_cast<double>(part.count * with);
          }
        }
      }
      for (size_t i = 0; i < 2; ++i) expected[i] = 0.5 * expected[i] + 0.5 * mean[i];
      MetricTotals totals;
      ASSERT_TRUE(strategy->Step(batch, totals).ok());
    }
    const std::vector<float> moving =
        ValueOf(definition, *strategy->TakeSnapshot(), "batch_normalization/moving_mean");
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(moving[i], expected[i], 1e-6) << i;
  }
}

// Returns a batch whose last row, which the last device gets, is not finite.
data::Batch Damaged() {
  data::Batch batch = Rows(0, 7);
  batch.tensors[0].value.data<float>().back() = std::numeric_limits<float>::infinity();
  return batch;
}

TEST(Mirrored, AllDevicesSkipABatchThatIsNotFiniteForOne) {
  for (const VariableStorage storage : {VariableStorage::kMirrored, VariableStorage::kCentral}) {
    StrategyOptions options = Options(Define(kTwoLayers, 7));
    options.on_non_finite = config::OnNonFinite::kSkip;
    auto strategy = *MakeWithDevices(With(3, std::move(options), storage));
    ASSERT_TRUE(strategy->Start().ok());
    const std::vector<float> before = ValuesOf(*strategy->TakeSnapshot(), Slots::kWith);
    MetricTotals totals;
    StatusOr<StepOutcome> outcome = strategy->Step(Damaged(), totals);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_TRUE(outcome->skipped);
    EXPECT_EQ(outcome->global_step, 0);
    EXPECT_EQ(outcome->drawn, 1);
    EXPECT_EQ(totals.examples, 0);
    EXPECT_EQ(ValuesOf(*strategy->TakeSnapshot(), Slots::kWith), before);
    outcome = strategy->Step(Rows(0, 7), totals);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->global_step, 1);
    EXPECT_EQ(outcome->drawn, 2);
    EXPECT_EQ(totals.examples, 7);
    EXPECT_NE(strategy->TakeSnapshot()->ledger, "")
        << "the position no longer follows from the step";
  }
}

TEST(Mirrored, NumbersThatAreNotFiniteEndTheRun) {
  auto strategy = *MakeWithDevices(With(3, Options(Define(kTwoLayers, 7))));
  ASSERT_TRUE(strategy->Start().ok());
  MetricTotals totals;
  EXPECT_TRUE(state::IsRunFailure(strategy->Step(Damaged(), totals).status()));
}

// The table has 4 rows. The last device reads row 9, which does not exist.
TEST(Mirrored, AnErrorOfOneDeviceEndsTheStepOfAllAndChangesNothing) {
  const ModelDefinition definition = Define(
      R"([{"InputLayer": {"batch_shape": [null, 2], "dtype": "int32"}},
          {"Embedding": {"input_dim": 4, "output_dim": 3}}, {"Flatten": {}},
          {"Dense": {"units": 1}}])",
      6, DType::kInt32);
  for (const VariableStorage storage : {VariableStorage::kMirrored, VariableStorage::kCentral}) {
    auto strategy = *MakeWithDevices(With(3, Options(definition), storage));
    ASSERT_TRUE(strategy->Start().ok());
    const std::vector<float> before = ValuesOf(*strategy->TakeSnapshot(), Slots::kWith);
    data::Batch batch = Rows(0, 6);
    batch.tensors[0].value = Tensor(DType::kInt32, {6, 2});
    batch.tensors[0].value.data<int32_t>().back() = 9;
    MetricTotals totals;
    const Status status = strategy->Step(batch, totals).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_NE(Message(status).find("9"), std::string::npos) << status;
    EXPECT_EQ(totals.examples, 0);
    EXPECT_EQ(ValuesOf(*strategy->TakeSnapshot(), Slots::kWith), before);
    EXPECT_EQ(strategy->Step(Rows(0, 6), totals).status().code(), status.code());
  }
}

TEST(Mirrored, ContinuesFromASnapshot) {
  const ModelDefinition definition = Define(kTwoLayers, 7);
  state::Snapshot snapshot;
  MetricTotals totals;
  auto first = *MakeWithDevices(With(2, Options(definition)));
  ASSERT_TRUE(first->Start().ok());
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(first->Step(Rows(step, 7), totals).ok());
  snapshot = *first->TakeSnapshot();
  StrategyOptions options = Options(definition);
  options.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
    return snapshot;
  };
  auto second = *MakeWithDevices(With(2, std::move(options)));
  EXPECT_EQ(second->Start()->global_step, 3);
  ASSERT_TRUE(first->Step(Rows(3, 7), totals).ok());
  ASSERT_TRUE(second->Step(Rows(3, 7), totals).ok());
  EXPECT_EQ(ValuesOf(*first->TakeSnapshot(), Slots::kWith),
            ValuesOf(*second->TakeSnapshot(), Slots::kWith));
}

TEST(Mirrored, OnlyACpuIsDivided) {
  StrategyOptions options = Options(Define(kTwoLayers, 7));
  options.device = *exec::DeviceByName("fake");
  EXPECT_EQ(MakeWithDevices(With(2, std::move(options))).status().code(),
            StatusCode::kUnimplemented);
}

TEST(DeviceThreads, EachDeviceHasAThreadOfItsOwn) {
  DeviceThreads threads(3);
  std::vector<Thread::Id> ids(3);
  std::vector<int> runs(3, 0);
  threads.Run([&](int device) { ids[static_cast<size_t>(device)] = Thread::CurrentId(); });
  EXPECT_EQ(ids[0], Thread::CurrentId());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[0]);
  EXPECT_NE(ids[2], ids[1]);
  for (int run = 0; run < 100; ++run) {
    threads.Run([&](int device) {
      const auto at = static_cast<size_t>(device);
      EXPECT_EQ(ids[at], Thread::CurrentId());
      ++runs[at];
    });
    EXPECT_EQ(runs, std::vector<int>(3, run + 1));
  }
}

}  // namespace
}  // namespace tfjob::strategy
