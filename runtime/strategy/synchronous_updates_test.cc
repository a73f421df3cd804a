// Compares synchronous training with parameter servers, which clip the mean gradient and update the
// variables, with training on one device on the same examples.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/pipe_connector.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/parameter_server_strategy.h"

namespace tfjob::strategy {
namespace {

using optimizer::ClipKind;

constexpr int kTasks = 3;
constexpr int kBatch = 4;
constexpr int kSteps = 30;

struct Training {
  optimizer::Optimizer optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  optimizer::Clipping clipping = {};
};

ModelDefinition TwoLayers(const Training& training, int batch_size) {
  ModelDefinition definition;
  const Json layers = *ParseJson(
      R"([{"Dense": {"units": 4, "activation": "tanh"}}, {"Dense": {"units": 1}}])", "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  definition.build.batch_size = batch_size;
  definition.build.features = model::Features({6});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.build.clipping = training.clipping;
  definition.state.optimizer = training.optimizer;
  definition.state.optimizer.learning_rate = 0.02;
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

std::unique_ptr<data::Pipeline> Batches(int batch_size, int task, int tasks) {
  auto dataset = std::make_shared<const data::Dataset>(*data::MakeLinear(
      {.weights = {1, -1, 3, 0.5, 2, -2}, .bias = 0.5, .noise = 0, .examples = 120}));
  return *data::Pipeline::Create(dataset, {.batch_size = batch_size,
                                           .shuffle = false,
                                           .worker = task,
                                           .workers = tasks,
                                           .prefetch = 0,
                                           .columns = data::FloatColumns(*dataset)});
}

void Train(Strategy& strategy, data::Pipeline& batches) {
  ASSERT_TRUE(strategy.Start().ok());
  MetricTotals totals;
  for (int i = 1; i <= kSteps; ++i) {
    const StatusOr<StepOutcome> outcome = strategy.Step(*batches.Next(), totals);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ASSERT_EQ(outcome->global_step, i);
  }
}

std::vector<float> ValuesOf(Strategy& strategy) {
  std::vector<float> values;
  const state::Snapshot snapshot = *strategy.TakeSnapshot();
  for (const state::VariableState& state : snapshot.variables) {
    const auto span = state.value.data<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
  return values;
}

std::vector<float> OnOneDevice(const Training& training) {
  auto strategy = *MakeOneDevice({.task_type = "chief", .incarnation = 1},
                                 Options(TwoLayers(training, kBatch * kTasks)));
  Train(*strategy, *Batches(kBatch * kTasks, 0, 1));
  return ValuesOf(*strategy);
}

// Two servers and three tasks. The first layer's kernel is split into six shards of one row.
class Job {
 public:
  explicit Job(const Training& training) : definition_(TwoLayers(training, kBatch)) {
    for (int i = 0; i < 2; ++i) {
      const rpc::Identity identity{.task_type = "ps", .task_index = i, .incarnation = 1};
      servers_.push_back(
          *ps::ParameterServer::Create({.identity = identity, .connector = &pipes_}));
      pipes_.Listen(kServers[static_cast<size_t>(i)], ps::kParameterService, identity,
                    *servers_.back());
    }
    for (int i = 0; i < kTasks; ++i) tasks_.push_back(*MakeParameterServer(Task(i)));
  }
  ~Job() {
    tasks_.clear();
    for (const std::string& server : kServers) pipes_.Close(server);
  }

  std::vector<float> Run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < kTasks; ++i) {
      threads.emplace_back(
          [this, i] { Train(*tasks_[static_cast<size_t>(i)], *Batches(kBatch, i, kTasks)); });
    }
    for (std::thread& thread : threads) thread.join();
    return ValuesOf(*tasks_[0]);
  }

 private:
  ParameterServerOptions Task(int index) {
    return {.common = Options(definition_),
            .parameters = {.state = definition_.state,
                           .mode = ps::Mode::kSynchronous,
                           .replicas_to_aggregate = kTasks,
                           .tasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}},
                           .start_timeout = 30s,
                           .max_shard_bytes = 16},
            .servers = kServers,
            .identity = {.task_type = index == 0 ? "chief" : "worker",
                         .task_index = index == 0 ? 0 : index - 1,
                         .incarnation = 1},
            .chief = index == 0,
            .patience = 30s,
            .connector = &pipes_};
  }

  const std::vector<std::string> kServers = {"ps-0", "ps-1"};
  const ModelDefinition definition_;
  rpc::PipeConnector pipes_;
  std::vector<std::unique_ptr<ps::ParameterServer>> servers_;
  std::vector<std::unique_ptr<Strategy>> tasks_;
};

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    norm += std::pow(a[i], 2);
  }
  return std::sqrt(difference / norm);
}

TEST(SynchronousClipping, ClipsTheMeanAsOneDeviceDoes) {
  const std::vector<float> unclipped = OnOneDevice({});
  for (const optimizer::Clipping& clipping :
       {optimizer::Clipping{ClipKind::kValue, 0.7}, optimizer::Clipping{ClipKind::kNorm, 0.9},
        optimizer::Clipping{ClipKind::kGlobalNorm, 1.3}}) {
    SCOPED_TRACE(static_cast<int>(clipping.kind));
    const std::vector<float> expected = OnOneDevice({.clipping = clipping});
    EXPECT_GT(Difference(unclipped, expected), 1e-3) << "the limit is never reached";
    const std::vector<float> got = Job({.clipping = clipping}).Run();
    EXPECT_LT(Difference(expected, got), 1e-5);
    EXPECT_EQ(Job({.clipping = clipping}).Run(), got) << "two runs differ";
  }
}

TEST(SynchronousOptimizers, UpdateAsOneDeviceDoes) {
  using optimizer::Kind;
  optimizer::Optimizer decays = optimizer::Optimizer::Default(Kind::kAdamW);
  decays.weight_decay = 0.5;
  decays.exclude_from_weight_decay = {"bias", "dense_1"};
  optimizer::Optimizer averages = optimizer::Optimizer::Default(Kind::kNadam);
  averages.use_ema = true;
  averages.ema_momentum = 0.8;
  averages.ema_overwrite_frequency = 7;
  optimizer::Optimizer accumulates = optimizer::Optimizer::Default(Kind::kLion);
  accumulates.gradient_accumulation_steps = 4;
  for (const optimizer::Optimizer& optimizer : {decays, averages, accumulates}) {
    SCOPED_TRACE(Name(optimizer.kind));
    optimizer::Optimizer plain = optimizer::Optimizer::Default(optimizer.kind);
    plain.weight_decay = 0;
    const std::vector<float> expected = OnOneDevice({.optimizer = optimizer});
    EXPECT_GT(Difference(OnOneDevice({.optimizer = plain}), expected), 1e-3)
        << "the options do nothing";
    EXPECT_LT(Difference(expected, Job({.optimizer = optimizer}).Run()), 1e-5);
  }
}

TEST(AsynchronousServers, RefuseWhatNeedsEveryNthStep) {
  Training training;
  training.optimizer.gradient_accumulation_steps = 4;
  rpc::PipeConnector pipes;
  const ModelDefinition definition = TwoLayers(training, kBatch);
  const auto made = MakeParameterServer({.common = Options(definition),
                                         .parameters = {.state = definition.state},
                                         .servers = {"ps-0"},
                                         .identity = {.task_type = "chief", .incarnation = 1},
                                         .chief = true,
                                         .connector = &pipes});
  EXPECT_EQ(Message(made.status()),
            "optimizer.gradient_accumulation_steps: asynchronous parameter servers apply every "
            "gradient by itself, and do nothing in every n-th step; set strategy.mode to sync, or "
            "remove gradient_accumulation_steps");
}

}  // namespace
}  // namespace tfjob::strategy
