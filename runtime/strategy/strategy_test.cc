// Tests the strategies one_device and parameter_server on a small model. Training on one device
// must reduce the error. Training with a single worker and parameter servers (in this process) must
// yield the same variables as training on one device, up to rounding.
#include "runtime/strategy/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/pipe_connector.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/parameter_server_strategy.h"

namespace tfjob::strategy {
namespace {

constexpr char kLayers[] =
    R"([{"Dense": {"units": 4, "activation": "tanh"}}, {"Dense": {"units": 1}}])";

ModelDefinition TwoLayers(optimizer::Kind kind) {
  ModelDefinition definition;
  const Json layers = *ParseJson(kLayers, "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  definition.build.batch_size = 8;
  definition.build.features = model::Features({2});
  definition.build.objectives = {{.loss = {.kind = model::LossKind::kMeanSquaredError},
                                  .metrics = {model::LossKind::kMeanSquaredError},
                                  .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(kind);
  definition.state.optimizer.learning_rate = 0.05;
  definition.seed = 5;
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

std::unique_ptr<data::Pipeline> Batches() {
  auto dataset = std::make_shared<const data::Dataset>(
      *data::MakeLinear({.weights = {1, -1}, .bias = 0.5, .noise = 0, .examples = 60}));
  return *data::Pipeline::Create(
      dataset, {.batch_size = 8, .prefetch = 0, .columns = data::FloatColumns(*dataset)});
}

StrategyOptions Options(const ModelDefinition& definition) {
  return {.definition = definition,
          .device = exec::CpuDevice(),
          .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
            return InitialState(definition);
          }};
}

rpc::Identity Chief() {
  return {.task_type = "chief", .incarnation = 1};
}

std::vector<float> ValuesOf(const state::Snapshot& snapshot) {
  std::vector<float> values;
  for (const state::VariableState& state : snapshot.variables) {
    const auto span = state.value.data<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
  return values;
}

// Returns the mean squared error of the last ten of `steps` steps.
double Train(Strategy& strategy, int steps) {
  auto pipeline = Batches();
  MetricTotals last;
  for (int i = 0; i < steps; ++i) {
    if (i == steps - 10) last = {};
    StatusOr<StepOutcome> outcome = strategy.Step(*pipeline->Next(), last);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->global_step, i + 1);
  }
  return last.metric_sums[0] / static_cast<double>(last.examples);
}

TEST(OneDevice, LearnsAndGoesOnFromASnapshot) {
  const ModelDefinition definition = TwoLayers(optimizer::Kind::kAdam);
  auto strategy = *MakeOneDevice(Chief(), Options(definition));
  ASSERT_EQ(strategy->Start()->global_step, 0);
  EXPECT_LT(Train(*strategy, 400), 0.02);

  StatusOr<state::Snapshot> snapshot = strategy->TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->global_step, 400);
  StrategyOptions again = Options(definition);
  again.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
    return *snapshot;
  };
  auto restored = *MakeOneDevice(Chief(), std::move(again));
  ASSERT_EQ(restored->Start()->global_step, 400);
  EXPECT_EQ(restored->Start()->drawn, 400);
  auto pipeline = Batches();
  MetricTotals ignored;
  ASSERT_TRUE(strategy->Step(*pipeline->Next(), ignored).ok());
  pipeline = Batches();
  ASSERT_TRUE(restored->Step(*pipeline->Next(), ignored).ok());
  EXPECT_EQ(ValuesOf(*strategy->TakeSnapshot()), ValuesOf(*restored->TakeSnapshot()));
}

TEST(OneDevice, TakesValuesThatArePutIntoTheVariables) {
  const ModelDefinition definition = TwoLayers(optimizer::Kind::kAdam);
  StrategyOptions options = Options(definition);
  options.provide_state = [](const state::Snapshot* into) -> StatusOr<state::Snapshot> {
    state::Snapshot filled = *into;
    filled.global_step = 7;
    for (state::VariableState& state : filled.variables) {
      std::ranges::fill(state.value.data<float>(), 3.0f);
      for (Tensor& slot : state.slots) std::ranges::fill(slot.data<float>(), 0.5f);
    }
    return filled;
  };
  auto strategy = *MakeOneDevice(Chief(), std::move(options));
  ASSERT_EQ(strategy->Start()->global_step, 7);
  const state::Snapshot snapshot = *strategy->TakeSnapshot();
  EXPECT_EQ(snapshot.variables[0].value.data<float>()[1], 3);
  EXPECT_EQ(snapshot.variables[0].slots[1].data<float>()[1], 0.5f);
}

// Returns a model with a normalisation layer, whose moving statistics no optimizer changes, a
// frozen layer, and a variable that is frozen by its name.
ModelDefinition Normalised() {
  ModelDefinition definition = TwoLayers(optimizer::Kind::kAdam);
  const Json layers = *ParseJson(
      R"([{"BatchNormalization": {"momentum": 0.5}}, {"Dense": {"units": 4, "trainable": false}},
          {"Dense": {"units": 1}}])",
      "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  definition.model.frozen = {{.pattern = "dense_1/kernel"}};
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

std::vector<float> ValueOf(const ModelDefinition& definition, const state::Snapshot& snapshot,
                           const std::string& name) {
  for (size_t v = 0; v < definition.variables.size(); ++v) {
    if (definition.variables[v].name != name) continue;
    const auto values = snapshot.variables[v].value.data<float>();
    EXPECT_EQ(snapshot.variables[v].slots.size(), definition.variables[v].trained() ? 2u : 0u)
        << name << ": only what is trained has slots";
    return {values.begin(), values.end()};
  }
  ADD_FAILURE() << "no variable " << name;
  return {};
}

std::vector<float> MeansOf(const Tensor& features) {
  std::vector<float> means(static_cast<size_t>(features.shape().dim(1)));
  const auto rows = static_cast<size_t>(features.shape().dim(0));
  for (size_t i = 0; i < rows * means.size(); ++i)
    means[i % means.size()] += features.data<float>()[i] / static_cast<float>(rows);
  return means;
}

// Runs two steps, and compares the moving mean with one that is computed here.
void ExpectMovingMean(const ModelDefinition& definition, Strategy& strategy) {
  ASSERT_TRUE(strategy.Start().ok());
  const auto frozen_values = [&](const state::Snapshot& snapshot) {
    return std::pair(ValueOf(definition, snapshot, "dense/kernel"),
                     ValueOf(definition, snapshot, "dense_1/kernel"));
  };
  const auto frozen = frozen_values(*strategy.TakeSnapshot());
  auto pipeline = Batches();
  std::vector<float> expected(2, 0);
  MetricTotals totals;
  for (int step = 0; step < 2; ++step) {
    const data::Batch& batch = *pipeline->Next();
    const std::vector<float> means = MeansOf(*batch.Find(data::kFeaturesArray));
    for (size_t i = 0; i < 2; ++i) expected[i] = 0.5f * expected[i] + 0.5f * means[i];
    const StatusOr<StepOutcome> outcome = strategy.Step(batch, totals);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
  }
  const state::Snapshot snapshot = *strategy.TakeSnapshot();
  const std::vector<float> got = ValueOf(definition, snapshot, "batch_normalization/moving_mean");
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
  EXPECT_EQ(frozen_values(snapshot), frozen);
  EXPECT_NE(ValueOf(definition, snapshot, "dense_1/bias"), std::vector<float>{0});
}

TEST(OneDevice, AssignsMovingStatisticsAndLeavesFrozenVariables) {
  const ModelDefinition definition = Normalised();
  for (config::OnNonFinite rule : {config::OnNonFinite::kFail, config::OnNonFinite::kSkip}) {
    StrategyOptions options = Options(definition);
    options.on_non_finite = rule;
    auto strategy = *MakeOneDevice(Chief(), std::move(options));
    ExpectMovingMean(definition, *strategy);
  }
}

// Returns batches whose loss is infinite.
std::unique_ptr<data::Pipeline> BadBatches() {
  auto dataset = std::make_shared<const data::Dataset>(
      *data::MakeLinear({.weights = {1e30, -1e30}, .bias = 0.5, .noise = 0, .examples = 60}));
  return *data::Pipeline::Create(
      dataset, {.batch_size = 8, .prefetch = 0, .columns = data::FloatColumns(*dataset)});
}

// A strategy with parameter servers. The destructor stops the servers.
struct WithServers {
  WithServers(const ModelDefinition& definition, ps::Mode mode, config::OnNonFinite rule) {
    for (int i = 0; i < 2; ++i) {
      const rpc::Identity identity{.task_type = "ps", .task_index = i, .incarnation = 1};
      tasks.push_back(*ps::ParameterServer::Create({.identity = identity, .connector = &pipes}));
      pipes.Listen(servers[static_cast<size_t>(i)], ps::kParameterService, identity, *tasks.back());
    }
    StrategyOptions options = Options(definition);
    options.on_non_finite = rule;
    strategy = *MakeParameterServer({.common = std::move(options),
                                     .parameters = {.state = definition.state, .mode = mode},
                                     .servers = servers,
                                     .identity = Chief(),
                                     .chief = true,
                                     .patience = 30s,
                                     .connector = &pipes});
  }
  ~WithServers() {
    strategy.reset();
    for (const std::string& server : servers) pipes.Close(server);
  }
  const std::vector<std::string> servers = {"ps-0", "ps-1"};
  std::vector<std::unique_ptr<ps::ParameterServer>> tasks;
  rpc::PipeConnector pipes;
  std::unique_ptr<Strategy> strategy;
};

TEST(ParameterServer, AssignsMovingStatisticsAndLeavesFrozenVariables) {
  const ModelDefinition definition = Normalised();
  for (ps::Mode mode : {ps::Mode::kSynchronous, ps::Mode::kAsynchronous}) {
    const WithServers job(definition, mode, config::OnNonFinite::kFail);
    ExpectMovingMean(definition, *job.strategy);
  }
}

// Runs a step on a bad batch, which must be skipped without changing anything.
void ExpectSkipped(Strategy& strategy, int64_t at_step) {
  const std::vector<float> before = ValuesOf(*strategy.TakeSnapshot());
  MetricTotals totals;
  const StatusOr<StepOutcome> outcome = strategy.Step(*BadBatches()->Next(), totals);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->skipped);
  EXPECT_EQ(outcome->global_step, at_step);
  EXPECT_EQ(outcome->drawn, at_step + 1) << "a batch that is skipped is drawn";
  EXPECT_EQ(totals.examples, 0);
  EXPECT_EQ(ValuesOf(*strategy.TakeSnapshot()), before);
}

void ExpectFailure(Strategy& strategy, std::string_view words) {
  MetricTotals totals;
  const StatusOr<StepOutcome> outcome = strategy.Step(*BadBatches()->Next(), totals);
  EXPECT_TRUE(state::IsRunFailure(outcome.status())) << outcome.status();
  EXPECT_TRUE(Message(outcome.status()).starts_with(words)) << outcome.status();
}

TEST(OneDevice, SkipsFailsOrGoesOnWhenNumbersAreNotFinite) {
  for (optimizer::Kind kind : {optimizer::Kind::kSgd, optimizer::Kind::kAdam}) {
    const ModelDefinition definition = TwoLayers(kind);
    StrategyOptions options = Options(definition);
    options.on_non_finite = config::OnNonFinite::kSkip;
    auto skipping = *MakeOneDevice(Chief(), std::move(options));
    ASSERT_TRUE(skipping->Start().ok());
    Train(*skipping, 20);
    ExpectSkipped(*skipping, 20);

    auto failing = *MakeOneDevice(Chief(), Options(definition));
    ASSERT_TRUE(failing->Start().ok());
    Train(*failing, 20);
    const std::vector<float> expected = ValuesOf(*failing->TakeSnapshot());
    const std::vector<float> got = ValuesOf(*skipping->TakeSnapshot());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
    ExpectFailure(*failing, "step 21: the loss is infinite: ");

    options = Options(definition);
    options.on_non_finite = config::OnNonFinite::kContinue;
    auto going_on = *MakeOneDevice(Chief(), std::move(options));
    ASSERT_TRUE(going_on->Start().ok());
    MetricTotals totals;
    EXPECT_TRUE(going_on->Step(*BadBatches()->Next(), totals).ok());
    EXPECT_TRUE(going_on->Step(*BadBatches()->Next(), totals).ok());
  }
}

TEST(OneDevice, GoesOnBehindTheBatchesThatItHasSkipped) {
  const ModelDefinition definition = TwoLayers(optimizer::Kind::kSgd);
  StrategyOptions options = Options(definition);
  options.on_non_finite = config::OnNonFinite::kSkip;
  auto skipping = *MakeOneDevice(Chief(), options);
  ASSERT_TRUE(skipping->Start().ok());
  Train(*skipping, 20);
  EXPECT_EQ(skipping->TakeSnapshot()->ledger, "") << "the step says it";
  MetricTotals totals;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(skipping->Step(*BadBatches()->Next(), totals)->skipped);
  state::Snapshot snapshot = *skipping->TakeSnapshot();
  EXPECT_EQ(snapshot.ledger, "-3 chief 0 0 22\n");

  options.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
    return snapshot;
  };
  auto restored = *MakeOneDevice(Chief(), options);
  const StatusOr<StepOutcome> start = restored->Start();
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->global_step, 20);
  EXPECT_EQ(start->drawn, 22);
  EXPECT_EQ(restored->Step(*Batches()->Next(), totals)->drawn, 23);
  EXPECT_EQ(restored->TakeSnapshot()->ledger, "-3 chief 0 0 23\n");

  // Each of these ledgers has the positions of two tasks, an invalid position, or none.
  for (const char* other :
       {"-3 chief 0 0 30\n-3 worker 0 0 30\n", "-3 chief 0 0 -1\n",
        "-3 chief 0 0 1152921504606846977\n", "7 chief 0 1 30\n", "who\nwhat"}) {
    snapshot.ledger = other;
    EXPECT_EQ(restored->Start()->drawn, 20) << other;
  }
}

TEST(OneDevice, NamesTheVariableThatItsUpdateHasDamaged) {
  ModelDefinition definition = TwoLayers(optimizer::Kind::kSgd);
  definition.state.optimizer.learning_rate = 3e38;
  auto strategy = *MakeOneDevice(Chief(), Options(definition));
  ASSERT_TRUE(strategy->Start().ok());
  MetricTotals totals;
  const Status failed = strategy->Step(*Batches()->Next(), totals).status();
  if (failed.ok()) ExpectFailure(*strategy, "step 2: the loss is ");
  EXPECT_TRUE(failed.ok() || state::IsRunFailure(failed)) << failed;
}

TEST(ParameterServer, SkipsOrFailsWhenNumbersAreNotFinite) {
  for (ps::Mode mode : {ps::Mode::kAsynchronous, ps::Mode::kSynchronous}) {
    const ModelDefinition definition = TwoLayers(optimizer::Kind::kAdam);
    WithServers skipping(definition, mode, config::OnNonFinite::kSkip);
    ASSERT_TRUE(skipping.strategy->Start().ok());
    Train(*skipping.strategy, 20);
    ExpectSkipped(*skipping.strategy, 20);
    MetricTotals totals;
    EXPECT_EQ(skipping.strategy->Step(*Batches()->Next(), totals)->global_step, 21);

    WithServers failing(definition, mode, config::OnNonFinite::kFail);
    ASSERT_TRUE(failing.strategy->Start().ok());
    Train(*failing.strategy, 20);
    ExpectFailure(*failing.strategy, "chief 0, step 21: the loss is infinite: ");
    const Status failure = state::RunFailure("chief 0, step 21: the loss is infinite");
    EXPECT_TRUE(failing.strategy->Fail(failure).ok());
    for (auto& task : failing.tasks) EXPECT_EQ(task->WaitUntilFinished(), failure);
  }
}

TEST(ParameterServer, OneWorkerTakesTheStepsOfOneDevice) {
  for (optimizer::Kind kind : {optimizer::Kind::kSgd, optimizer::Kind::kAdam}) {
    for (ps::Mode mode : {ps::Mode::kAsynchronous, ps::Mode::kSynchronous}) {
      const ModelDefinition definition = TwoLayers(kind);
      auto alone = *MakeOneDevice(Chief(), Options(definition));
      ASSERT_TRUE(alone->Start().ok());
      Train(*alone, 20);

      const std::vector<std::string> servers = {"ps-0", "ps-1"};
      std::vector<std::unique_ptr<ps::ParameterServer>> tasks;
      rpc::PipeConnector pipes;
      for (int i = 0; i < 2; ++i) {
        const rpc::Identity identity{.task_type = "ps", .task_index = i, .incarnation = 1};
        tasks.push_back(*ps::ParameterServer::Create({.identity = identity, .connector = &pipes}));
        pipes.Listen(servers[static_cast<size_t>(i)], ps::kParameterService, identity,
                     *tasks.back());
      }
      auto strategy = *MakeParameterServer({.common = Options(definition),
                                            .parameters = {.state = definition.state, .mode = mode},
                                            .servers = servers,
                                            .identity = Chief(),
                                            .chief = true,
                                            .patience = 30s,
                                            .connector = &pipes});
      StatusOr<StepOutcome> start = strategy->Start();
      ASSERT_TRUE(start.ok()) << start.status();
      Train(*strategy, 20);
      const std::vector<float> expected = ValuesOf(*alone->TakeSnapshot());
      const std::vector<float> got = ValuesOf(*strategy->TakeSnapshot());
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
      ASSERT_TRUE(strategy->Finish().ok());
      for (auto& task : tasks) EXPECT_TRUE(task->WaitUntilFinished().ok());
      strategy.reset();
      for (const std::string& server : servers) pipes.Close(server);
    }
  }
}

// A single task has drawn 22 batches and skipped two of them.
TEST(ParameterServer, TasksShareTheBatchesThatOneDeviceHasDrawn) {
  const ModelDefinition definition = TwoLayers(optimizer::Kind::kSgd);
  StrategyOptions options = Options(definition);
  options.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
    state::Snapshot snapshot = InitialState(definition);
    snapshot.global_step = 20;
    snapshot.ledger = "-3 chief 0 0 22\n";
    return snapshot;
  };
  const rpc::Identity server{.task_type = "ps", .incarnation = 1};
  rpc::PipeConnector pipes;
  auto ps = *ps::ParameterServer::Create({.identity = server, .connector = &pipes});
  pipes.Listen("ps-0", ps::kParameterService, server, *ps);
  {
    const auto make = [&](const rpc::Identity& self, bool chief) {
      return *MakeParameterServer(
          {.common = options,
           .parameters = {.state = definition.state, .tasks = {{"chief", 0}, {"worker", 0}}},
           .servers = {"ps-0"},
           .identity = self,
           .chief = chief,
           .patience = 30s,
           .connector = &pipes});
    };
    auto chief = make(Chief(), true);
    const StatusOr<StepOutcome> start = chief->Start();
    ASSERT_TRUE(start.ok()) << start.status();
    EXPECT_EQ(start->global_step, 20);
    EXPECT_EQ(start->drawn, 11);
    auto worker = make({.task_type = "worker", .incarnation = 1}, false);
    EXPECT_EQ(worker->Start()->drawn, 11);
    ASSERT_TRUE(chief->Finish().ok());
  }
  pipes.Close("ps-0");
}

}  // namespace
}  // namespace tfjob::strategy
