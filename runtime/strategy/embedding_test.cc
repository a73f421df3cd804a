// Tests that gradients by rows update tables exactly as dense gradients would.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/model/keras.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/pipe_connector.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/parameter_server_strategy.h"
#include "runtime/strategy/test_rows.h"
#include "runtime/strategy/test_tables.h"

namespace tfjob::strategy {
namespace {

using optimizer::Kind;

constexpr int64_t kSteps = 12;

// Returns the snapshot with all values in memory.
state::Snapshot Whole(state::Snapshot snapshot, const ModelDefinition& definition) {
  for (size_t v = 0; v < snapshot.variables.size(); ++v) {
    state::VariableState& state = snapshot.variables[v];
    for (size_t part = 0; part < state.streamed.size(); ++part) {
      Tensor whole = *state::ReadWhole(definition.state.variables[v], *state.streamed[part]);
      part == 0 ? state.value = std::move(whole) : state.slots.emplace_back(std::move(whole));
    }
    state.streamed.clear();
  }
  return snapshot;
}

// Returns variables and slots after some steps.
std::vector<float> Train(const StrategyOptions& options) {
  auto strategy = MakeOneDevice({.task_type = "chief", .incarnation = 1}, options);
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_TRUE((*strategy)->Start().ok());
  MetricTotals totals;
  for (int64_t step = 0; step < kSteps; ++step) {
    const StatusOr<StepOutcome> outcome = (*strategy)->Step(TableBatch(step), totals);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
  }
  return ValuesOf(*(*strategy)->TakeSnapshot(), Slots::kWith);
}

void ExpectNear(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << "element " << i;
}

TEST(Embedding, TakesTheStepsOfDenseGradients) {
  for (const optimizer::Optimizer& optimizer : Optimizers()) {
    SCOPED_TRACE(StrCat(Name(optimizer.kind), " ", optimizer.momentum));
    const std::vector<float> dense = Train(TableOptions(Pooled(optimizer, false)));
    ExpectNear(Train(TableOptions(Pooled(optimizer, true))), dense);
    StrategyOptions skips = TableOptions(Pooled(optimizer, true));
    skips.on_non_finite = config::OnNonFinite::kSkip;
    ExpectNear(Train(skips), dense);
  }
}

// The programs that apply contributions expect a fixed number of rows; a smaller batch has fewer.
TEST(Embedding, TakesSmallerBatchesIfBatchesMayBeSkipped) {
  const auto train = [](bool rows, config::OnNonFinite rule) {
    StrategyOptions options = TableOptions(Pooled(Optimizers()[0], rows));
    options.on_non_finite = rule;
    auto strategy = *MakeOneDevice({.task_type = "chief", .incarnation = 1}, options);
    EXPECT_TRUE(strategy->Start().ok());
    MetricTotals totals;
    for (const int64_t size : {kBatch, kBatch - 1, int64_t{1}, kBatch}) {
      const auto outcome = strategy->Step(PartOf(TableBatch(size), 0, size), totals);
      EXPECT_TRUE(outcome.ok()) << outcome.status();
    }
    return ValuesOf(*strategy->TakeSnapshot(), Slots::kWith);
  };
  ExpectNear(train(true, config::OnNonFinite::kSkip), train(false, config::OnNonFinite::kFail));
}

TEST(Embedding, ClipsByTheNormOfTheSumsOfEqualRows) {
  for (const auto kind : {optimizer::ClipKind::kValue, optimizer::ClipKind::kNorm,
                          optimizer::ClipKind::kGlobalNorm}) {
    ModelDefinition dense = Pooled(Optimizers()[0], false), rows = Pooled(Optimizers()[0], true);
    dense.build.clipping = rows.build.clipping = {.kind = kind, .limit = 0.02};
    const std::vector<float> clipped = Train(TableOptions(dense));
    ExpectNear(Train(TableOptions(rows)), clipped);
    EXPECT_NE(clipped, Train(TableOptions(Pooled(Optimizers()[0], false))))
        << "the limit has an effect";
  }
}

TEST(Embedding, LazyOptimizersLeaveTheRowsThatABatchLacks) {
  optimizer::Optimizer lazy = optimizer::Optimizer::Default(Kind::kAdam);
  lazy.lazy = true;
  const ModelDefinition definition = Pooled(lazy, true);
  auto strategy =
      *MakeOneDevice({.task_type = "chief", .incarnation = 1}, TableOptions(definition));
  ASSERT_TRUE(strategy->Start().ok());
  MetricTotals totals;
  ASSERT_TRUE(strategy->Step(TableBatch(0), totals).ok());
  const state::Snapshot before = *strategy->TakeSnapshot();
  const data::Batch batch = TableBatch(1);
  ASSERT_TRUE(strategy->Step(batch, totals).ok());
  const state::Snapshot after = *strategy->TakeSnapshot();
  std::vector<bool> used(kRows);
  for (const float id : batch.tensors[0].value.data<float>()) used[static_cast<size_t>(id)] = true;
  for (int64_t i = 0; i < kRows * 5; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(
        before.variables[0].value.data<float>()[at] == after.variables[0].value.data<float>()[at],
        !used[at / 5])
        << "element " << i;
  }
}

// Two servers, which share the table in shards of a few rows, and `count` tasks.
class Tasks {
 public:
  Tasks(const ModelDefinition& definition, ps::Mode mode, int count, int64_t table_bytes = 0)
      : definition_(definition), mode_(mode), count_(count), table_bytes_(table_bytes) {
    servers_.resize(2);
    for (size_t i = 0; i < 2; ++i) StartServer(i, /*incarnation=*/1);
    for (int i = 0; i < count; ++i) tasks_.push_back(*MakeParameterServer(OptionsOf(i)));
  }
  ~Tasks() {
    tasks_.clear();
    for (const std::string& server : kServers) pipes_.Close(server);
  }

  Strategy& first() { return *tasks_[0]; }
  Strategy& operator[](size_t task) { return *tasks_[task]; }
  // Replaces a server with an empty one.
  void LoseServer(size_t index) {
    pipes_.Close(kServers[index]);
    StartServer(index, /*incarnation=*/2);
  }

  // Trains each task on its part of the batches, and returns variables and slots.
  std::vector<float> Run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < count_; ++i) {
      threads.emplace_back([this, i] {
        Strategy& task = *tasks_[static_cast<size_t>(i)];
        ASSERT_TRUE(task.Start().ok());
        MetricTotals totals;
        for (int64_t step = 0; step < kSteps; ++step) {
          const auto outcome =
              task.Step(PartOf(TableBatch(step), i * kBatch / count_, kBatch / count_), totals);
          ASSERT_TRUE(outcome.ok()) << outcome.status();
          ASSERT_FALSE(outcome->dropped);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ValuesOf(Whole(*tasks_[0]->TakeSnapshot(), definition_), Slots::kWith);
  }

 private:
  void StartServer(size_t i, int64_t incarnation) {
    const rpc::Identity identity{
        .task_type = "ps", .task_index = static_cast<int>(i), .incarnation = incarnation};
    servers_[i] = *ps::ParameterServer::Create({.identity = identity, .connector = &pipes_});
    pipes_.Listen(kServers[i], ps::kParameterService, identity, *servers_[i]);
  }
  ParameterServerOptions OptionsOf(int index) {
    ParameterServerOptions options{.common = TableOptions(definition_),
                                   .parameters = {.state = definition_.state,
                                                  .mode = mode_,
                                                  .replicas_to_aggregate = count_,
                                                  .start_timeout = 30s,
                                                  .max_shard_bytes = 7 * 5 * sizeof(float)},
                                   .servers = kServers,
                                   .identity = {.task_type = index == 0 ? "chief" : "worker",
                                                .task_index = index == 0 ? 0 : index - 1,
                                                .incarnation = 1},
                                   .chief = index == 0,
                                   .table_bytes = table_bytes_,
                                   .patience = 30s,
                                   .connector = &pipes_};
    for (int i = 0; i < count_; ++i)
      options.parameters.tasks.push_back({i == 0 ? "chief" : "worker", i == 0 ? 0 : i - 1});
    return options;
  }

  const std::vector<std::string> kServers = {"ps-0", "ps-1"};
  const ModelDefinition definition_;
  const ps::Mode mode_;
  const int count_;
  const int64_t table_bytes_;
  rpc::PipeConnector pipes_;
  std::vector<std::unique_ptr<ps::ParameterServer>> servers_;
  std::vector<std::unique_ptr<Strategy>> tasks_;
};

TEST(Embedding, AsynchronousServersTakeTheStepsOfOneDevice) {
  for (const optimizer::Optimizer& optimizer : Optimizers()) {
    SCOPED_TRACE(StrCat(Name(optimizer.kind), " ", optimizer.momentum));
    const ModelDefinition definition = Pooled(optimizer, true);
    ExpectNear(Tasks(definition, ps::Mode::kAsynchronous, 1).Run(),
               Train(TableOptions(definition)));
  }
}

TEST(Embedding, SynchronousTasksTakeTheStepsOfOneDeviceWithTheWholeBatch) {
  for (const optimizer::Optimizer& optimizer : Optimizers()) {
    SCOPED_TRACE(StrCat(Name(optimizer.kind), " ", optimizer.momentum));
    const ModelDefinition definition = Pooled(optimizer, true);
    const ModelDefinition part = WithBatchSize(definition, kBatch / 4);
    const std::vector<float> got = Tasks(part, ps::Mode::kSynchronous, 4).Run();
    ExpectNear(got, Train(TableOptions(definition)));
    EXPECT_EQ(got, Tasks(part, ps::Mode::kSynchronous, 4).Run()) << "two runs differ";
  }
}

TEST(Embedding, SynchronousServersClipTheMeanOfRows) {
  for (const auto kind : {optimizer::ClipKind::kValue, optimizer::ClipKind::kNorm,
                          optimizer::ClipKind::kGlobalNorm}) {
    SCOPED_TRACE(static_cast<int>(kind));
    ModelDefinition definition = Pooled(Optimizers()[1], true);
    definition.build.clipping = {.kind = kind, .limit = 0.02};
    const ModelDefinition part = WithBatchSize(definition, kBatch / 4);
    ExpectNear(Tasks(part, ps::Mode::kSynchronous, 4).Run(), Train(TableOptions(definition)));
  }
}

// With axis 1, each norm is over a single row. With axis 0, the norms span all rows, so the table
// is a single shard.
TEST(Embedding, ConstraintsApplyToAllRowsUnderEveryStrategy) {
  for (const int axis : {0, 1}) {
    SCOPED_TRACE(axis);
    const std::string constraint =
        StrCat(R"({"MaxNorm": {"max_value": 0.05, "axis": )", axis, "}}");
    const optimizer::Optimizer adagrad = Optimizers()[1];
    const std::vector<float> dense = Train(TableOptions(Pooled(adagrad, false, constraint)));
    const ModelDefinition definition = Pooled(adagrad, true, constraint);
    ExpectNear(Train(TableOptions(definition)), dense);
    StrategyOptions skips = TableOptions(definition);
    skips.on_non_finite = config::OnNonFinite::kSkip;
    ExpectNear(Train(skips), dense);
    ExpectNear(Tasks(definition, ps::Mode::kAsynchronous, 1).Run(), dense);
    const ModelDefinition part = WithBatchSize(definition, kBatch / 4);
    ExpectNear(Tasks(part, ps::Mode::kSynchronous, 4).Run(), dense);
    double squares = 0;  // of the first row or column of the table
    for (size_t i = 0; i < (axis == 0 ? 40u : 5u); ++i)
      squares += std::pow(dense[i * (axis == 0 ? 5 : 1)], 2);
    EXPECT_LT(std::sqrt(squares), 0.05 + 1e-6);
    EXPECT_GT(std::sqrt(squares), 0.01);
  }
}

// The table of Pooled() exceeds this limit, so tasks read only the rows that they need.
constexpr int64_t kByRows = 100;

TEST(Embedding, RowsOfATableOnServersTakeTheStepsOfTheWholeTable) {
  for (const optimizer::Optimizer& optimizer : Optimizers()) {
    SCOPED_TRACE(StrCat(Name(optimizer.kind), " ", optimizer.momentum));
    const ModelDefinition definition = Pooled(optimizer, true);
    EXPECT_EQ(Tasks(definition, ps::Mode::kAsynchronous, 1, kByRows).Run(),
              Tasks(definition, ps::Mode::kAsynchronous, 1).Run());
    const ModelDefinition part = WithBatchSize(definition, kBatch / 4);
    EXPECT_EQ(Tasks(part, ps::Mode::kSynchronous, 4, kByRows).Run(),
              Tasks(part, ps::Mode::kSynchronous, 4).Run());
  }
}

TEST(Embedding, RowsOfATableOnServersGoWithAllOptions) {
  for (const ModelDefinition& definition : SpecialOptions()) {
    const ModelDefinition part = WithBatchSize(definition, kBatch / 4);
    EXPECT_EQ(Tasks(part, ps::Mode::kSynchronous, 4, kByRows).Run(),
              Tasks(part, ps::Mode::kSynchronous, 4).Run());
    EXPECT_EQ(Tasks(definition, ps::Mode::kAsynchronous, 1, kByRows).Run(),
              Tasks(definition, ps::Mode::kAsynchronous, 1).Run());
  }
}

TEST(Embedding, TakesALostBatchAgainAfterItsRowsWereLost) {
  const ModelDefinition definition = Pooled(Optimizers()[1], true);
  const std::vector<float> undisturbed = Tasks(definition, ps::Mode::kSynchronous, 1).Run();
  Tasks tasks(definition, ps::Mode::kSynchronous, 1, kByRows);
  ASSERT_TRUE(tasks[0].Start().ok());
  MetricTotals totals;
  for (int64_t step = 0; step < 3; ++step)
    ASSERT_TRUE(tasks[0].Step(TableBatch(step), totals).ok());
  tasks.LoseServer(1);
  const StatusOr<StepOutcome> outcome = tasks[0].Step(TableBatch(3), totals);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->rolled_back);
  EXPECT_EQ(outcome->global_step, 0);
  EXPECT_EQ(outcome->drawn, 0);
  for (int64_t step = 0; step < kSteps; ++step)
    ASSERT_TRUE(tasks[0].Step(TableBatch(step), totals).ok());
  EXPECT_EQ(ValuesOf(Whole(*tasks[0].TakeSnapshot(), definition), Slots::kWith), undisturbed);
}

TEST(Embedding, RefusesIdsThatAreNoRowsOfATableOnServers) {
  Tasks tasks(Pooled(Optimizers()[0], true), ps::Mode::kSynchronous, 1, kByRows);
  ASSERT_TRUE(tasks[0].Start().ok());
  data::Batch batch = TableBatch(0);
  batch.tensors[0].value.data<float>()[4] = 40;
  MetricTotals totals;
  EXPECT_EQ(tasks[0].Step(batch, totals).status(),
            InvalidArgument("embedding/Gather: id 40 at position 4 of the batch is no row of "
                            "embedding/embeddings: expected 0 to 39"));
}

// Returns the status of a step on a batch that contains this id.
Status StepWith(float id) {
  auto strategy = *MakeOneDevice({.task_type = "chief", .incarnation = 1},
                                 TableOptions(Pooled(Optimizers()[0], true)));
  EXPECT_TRUE(strategy->Start().ok());
  const std::vector<float> before = ValuesOf(*strategy->TakeSnapshot(), Slots::kWith);
  data::Batch batch = TableBatch(0);
  batch.tensors[0].value.data<float>()[4] = id;
  MetricTotals totals;
  Status status = strategy->Step(batch, totals).status();
  if (!status.ok()) {
    EXPECT_EQ(before, ValuesOf(*strategy->TakeSnapshot(), Slots::kWith)) << "half a step";
  }
  return status;
}

TEST(Embedding, RefusesIdsThatAreNoRows) {
  EXPECT_EQ(StepWith(39.9f), OkStatus()) << "truncated, as in Keras";
  EXPECT_EQ(Message(StepWith(40)),
            "embedding/Gather: id 40 at position 4 of the batch is no row of embedding/embeddings: "
            "expected 0 to 39");
  EXPECT_EQ(StepWith(-1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StepWith(std::numeric_limits<float>::infinity()).code(),
            absl::StatusCode::kInvalidArgument);
}

// Normalised ids have mean 0, so some of them are negative, and the step fails.
TEST(Embedding, AStepThatFailsLeavesMovingStatistics) {
  ModelDefinition definition = Pooled(Optimizers()[0], true);
  const Json layers = *ParseJson(
      R"([{"BatchNormalization": {"center": false, "scale": false}},
          {"Embedding": {"input_dim": 40, "output_dim": 5}}, "GlobalAveragePooling1D",
          {"Dense": {"units": 1}}])",
      "layers");
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  ASSERT_EQ(DefineVariables(definition), OkStatus());
  const auto expect_no_change = [](Strategy& strategy) {
    ASSERT_TRUE(strategy.Start().ok());
    const std::vector<float> before = ValuesOf(*strategy.TakeSnapshot(), Slots::kWith);
    MetricTotals totals;
    const Status status = strategy.Step(TableBatch(0), totals).status();
    EXPECT_NE(Message(status).find("is no row of"), std::string::npos) << status;
    EXPECT_EQ(before, ValuesOf(*strategy.TakeSnapshot(), Slots::kWith));
  };
  expect_no_change(
      **MakeOneDevice({.task_type = "chief", .incarnation = 1}, TableOptions(definition)));
  Tasks tasks(definition, ps::Mode::kAsynchronous, 1);
  expect_no_change(tasks.first());
}

TEST(Embedding, EndsTheRunWhenARowIsNotFinite) {
  ModelDefinition definition = Pooled(Optimizers()[0], true);
  definition.state.optimizer.learning_rate = 1e38;
  auto strategy =
      *MakeOneDevice({.task_type = "chief", .incarnation = 1}, TableOptions(definition));
  ASSERT_TRUE(strategy->Start().ok());
  MetricTotals totals;
  Status status;
  for (int64_t step = 0; step < 5 && status.ok(); ++step)
    status = strategy->Step(TableBatch(step), totals).status();
  EXPECT_TRUE(state::IsRunFailure(status)) << status;
}

}  // namespace
}  // namespace tfjob::strategy
