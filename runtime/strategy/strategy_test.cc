// Tests both strategies on a small model. Training on one device must reduce the error. Training
// with a single worker and parameter servers (in this process) must yield the same variables, up to
// rounding.
#include "runtime/strategy/strategy.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/pipe_connector.h"
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
  definition.build.feature_shape = Shape({2});
  definition.build.label_dtype = DType::kFloat32;
  definition.build.loss.kind = model::LossKind::kMeanSquaredError;
  definition.build.metrics = {model::Metric::kMeanSquaredError};
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
      dataset, {.batch_size = 8, .prefetch = 0, .label_kind = data::LabelKind::kValue});
}

StrategyOptions Options(const ModelDefinition& definition) {
  return {.definition = definition,
          .device = exec::CpuDevice(),
          .provide_state = [definition]() -> StatusOr<state::Snapshot> {
            return InitialState(definition);
          }};
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
  return last.metric(0);
}

TEST(OneDevice, LearnsAndGoesOnFromASnapshot) {
  const ModelDefinition definition = TwoLayers(optimizer::Kind::kAdam);
  auto strategy = *MakeOneDevice(Options(definition));
  ASSERT_EQ(strategy->Start()->global_step, 0);
  EXPECT_LT(Train(*strategy, 400), 0.02);

  StatusOr<state::Snapshot> snapshot = strategy->TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->global_step, 400);
  StrategyOptions again = Options(definition);
  again.provide_state = [&]() -> StatusOr<state::Snapshot> { return *snapshot; };
  auto restored = *MakeOneDevice(std::move(again));
  ASSERT_EQ(restored->Start()->global_step, 400);
  EXPECT_EQ(restored->Start()->drawn, 400);
  auto pipeline = Batches();
  MetricTotals ignored;
  ASSERT_TRUE(strategy->Step(*pipeline->Next(), ignored).ok());
  pipeline = Batches();
  ASSERT_TRUE(restored->Step(*pipeline->Next(), ignored).ok());
  EXPECT_EQ(ValuesOf(*strategy->TakeSnapshot()), ValuesOf(*restored->TakeSnapshot()));
}

TEST(ParameterServer, OneWorkerTakesTheStepsOfOneDevice) {
  for (optimizer::Kind kind : {optimizer::Kind::kSgd, optimizer::Kind::kAdam}) {
    for (ps::Mode mode : {ps::Mode::kAsynchronous, ps::Mode::kSynchronous}) {
      const ModelDefinition definition = TwoLayers(kind);
      auto alone = *MakeOneDevice(Options(definition));
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
                                            .identity = {.task_type = "chief", .incarnation = 1},
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

}  // namespace
}  // namespace tfjob::strategy
