// Runs the roles of a job as threads of one process, connected over loopback. The tests complete
// runs with a chief, workers, servers and an evaluator, and stop, restart, add and remove tasks.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <thread>

#include "runtime/base/fake_clock.h"
#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/ps/client/client.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/server.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/strategy/parameter_server_strategy.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/train/task.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

class RolesTest : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  // Returns the training file of a job that learns y = 2x + 10.
  config::TrainingConfig Config(const std::string& more = "") const {
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1, kernel_initializer: zeros}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.1}
data:
  train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 64}
  eval: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 16}
batch_size: 8
threads: 1
save_checkpoints_steps: 1000000
log_step_count_steps: 0
model_dir: )",
                                    folder_, "/model\n", more);
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }

  // Returns the TF_CONFIG that the operator writes under enableDynamicWorker for a job with
  // two servers.
  cluster::TfConfig Sparse(const Task& task, const std::string& chief) {
    const std::string servers =
        task.type == "ps" ? StrCat("\"", AddressOf(task), "\"")
                          : StrCat("\"", AddressOf({"ps", 0}), "\",\"", AddressOf({"ps", 1}), "\"");
    std::string worker, own;
    if (task.type == "worker") worker = StrCat("\"", task.index, "\":\"", AddressOf(task), "\"");
    if (task.type == "chief") own = StrCat(R"(,"chief":[")", AddressOf(task), "\"]");
    StatusOr<cluster::TfConfig> config = cluster::ParseTfConfig(
        StrCat(R"({"cluster":{"worker":{)", worker, R"(},"ps":[)", servers, "]", own,
               R"(},"task":{"type":")", task.type, R"(","index":)", task.index, "}}"));
    EXPECT_TRUE(config.ok()) << config.status();
    config->chief_type = chief;
    return *std::move(config);
  }

  int64_t LastCheckpoint() const {
    auto latest = io::LatestCheckpoint(folder_ + "/model");
    return latest.ok() && *latest ? (*latest)->step : -1;
  }
  // Connects to the server as worker 0 would, without running a worker.
  StatusOr<std::unique_ptr<ps::ParameterClient>> Stranger(const config::TrainingConfig& config,
                                                          std::vector<Tensor>& values) {
    ASSIGN_OR_RETURN(auto definition,
                     DefineModel(config, Split::kTrain, **LoadDataset(config, Split::kTrain), 2));
    for (const state::Variable& variable : definition.state.variables)
      values.emplace_back(variable.dtype, variable.shape);
    return ps::ParameterClient::Create(
        {.servers = {AddressOf({"ps", 0})},
         .identity = {"uid", 0, "worker", 0, 1},
         .definition = strategy::DefineParameters(config.strategy, definition.state, 2),
         .patience = 60s});
  }
  // Returns the result of the third step in which the worker has taken part.
  static ps::StepResult TrainThreeSteps(ps::ParameterClient& worker, std::vector<Tensor>& values) {
    std::vector<std::span<std::byte>> spans;
    for (Tensor& value : values) spans.push_back(value.bytes());
    EXPECT_TRUE(worker.WaitReady(spans).ok());
    const std::vector<std::span<const std::byte>> nothing(spans.size());
    ps::StepResult last;
    for (int step = 0; step < 3 || last.again; ++step) last = *worker.Exchange(nothing, spans);
    return last;
  }
  float Saved(const std::string& name) const {
    auto latest = io::LatestCheckpoint(folder_ + "/model");
    if (!latest.ok() || !*latest) return std::nanf("");
    auto reader = io::BundleReader::Open((*latest)->prefix);
    StatusOr<Tensor> value = reader.ok() ? (*reader)->Read(name) : reader.status();
    return value.ok() ? value->data<float>()[0] : std::nanf("");
  }
  bool Finished(const std::string& folder, int32_t attempt = 0) const {
    auto step = FinishedStep(folder_ + folder, {"uid", attempt});
    return step.ok() && step->has_value();
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/roles_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

const std::vector<Task> kAll = {{"chief", 0},  {"ps", 0},     {"ps", 1},
                                {"worker", 0}, {"worker", 1}, {"evaluator", 0}};

TEST_F(RolesTest, AJobOfAllRolesTrainsSavesEvaluatesAndEnds) {
  for (const Task& task : kAll) AddressOf(task);
  std::list<RunningTask> tasks;
  for (const Task& task : kAll) tasks.emplace_back(Config("max_steps: 600\n"), Static(task, kAll));
  for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
  EXPECT_GE(LastCheckpoint(), 600);
  EXPECT_NEAR(Saved("dense/kernel"), 2, 0.05);
  EXPECT_NEAR(Saved("dense/bias"), 10, 0.05);
  EXPECT_TRUE(Finished("/model"));
  EXPECT_TRUE(Finished("/model/eval"));
}

TEST_F(RolesTest, ARunWithAveragesEndsWithThem) {
  config::TrainingConfig config = Config("max_steps: 20\nsave_checkpoints_secs: 0\n");
  ASSERT_TRUE(config::Override(config, "optimizer.use_ema", "true").ok());
  RunningTask task(config, cluster::TfConfig());
  EXPECT_EQ(task.End(), OkStatus());
  EXPECT_EQ(LastCheckpoint(), 20);
  EXPECT_EQ(Saved("dense/kernel"), Saved("dense/kernel/average"));
  EXPECT_LT(Saved("dense/bias"), 9) << "the average lags behind the variable";
  EXPECT_NEAR(task.Progress().loss.value_or(0), std::pow(10 - Saved("dense/bias"), 2), 5)
      << "the evaluation uses the average";
}

// On every connection, both sides must prove that they have the key. This includes the streams to
// the two servers and between them, and the requests for progress that show the tasks that the run
// has ended.
TEST_F(RolesTest, AJobWithAKeyTrainsAndEnds) {
  const rpc::Credentials credentials{.key = *wire::JobKey::Parse(std::string(64, 'c'))};
  for (const Task& task : kAll) AddressOf(task);
  std::list<RunningTask> tasks;
  for (const Task& task : kAll) {
    tasks.emplace_back(Config("max_steps: 50\n"), Static(task, kAll), 0, credentials);
  }
  for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
  EXPECT_TRUE(Finished("/model"));
  EXPECT_TRUE(Finished("/model/eval"));
}

TEST_F(RolesTest, AnEvaluationThatFailsStillEndsTheJob) {
  const std::vector<Task> all = {{"chief", 0}, {"ps", 0}};
  for (const Task& task : all) AddressOf(task);
  RunningTask ps(Config("max_steps: 20\n"), Static({"ps", 0}, all));
  const Status failure = DataLoss("the examples are gone");
  RunningTask chief(TaskOptions{.config = Config("max_steps: 20\n"),
                                .tf_config = Static({"chief", 0}, all),
                                .job = {"uid", 0},
                                .before_evaluation = [&] { return failure; }});
  EXPECT_EQ(chief.End(), failure);
  ASSERT_TRUE(ps.AwaitEnd()) << "the server did not learn that the job has ended";
  EXPECT_EQ(ps.End(), OkStatus());
  EXPECT_TRUE(Finished("/model")) << "all steps were made and saved";
}

TEST_F(RolesTest, AStoppedJobSavesAndTheNextOneGoesOnFromThere) {
  const std::vector<Task> all = {{"chief", 0}, {"ps", 0}, {"worker", 0}};
  for (const Task& task : all) AddressOf(task);
  {
    RunningTask ps(Config("max_steps: 100000000\n"), Static({"ps", 0}, all));
    RunningTask chief(Config("max_steps: 100000000\n"), Static({"chief", 0}, all));
    RunningTask worker(Config("max_steps: 100000000\n"), Static({"worker", 0}, all));
    ASSERT_TRUE(chief.AwaitStep(50));
    EXPECT_EQ(worker.Stop().code(), StatusCode::kCancelled);
    EXPECT_EQ(chief.Stop().code(), StatusCode::kCancelled);
    EXPECT_EQ(ps.Stop().code(), StatusCode::kCancelled);
  }
  const int64_t saved = LastCheckpoint();
  EXPECT_GE(saved, 50);
  EXPECT_FALSE(Finished("/model"));
  const std::string last = StrCat("max_steps: ", saved + 20, "\n");
  std::list<RunningTask> tasks;
  for (const Task& task : all) tasks.emplace_back(Config(last), Static(task, all));
  for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
  EXPECT_GE(LastCheckpoint(), saved + 20);
  EXPECT_LE(LastCheckpoint(), saved + 22) << "the steps before it must not be repeated";
  EXPECT_TRUE(Finished("/model"));
}

TEST_F(RolesTest, AChiefSavesItsLastWholeStepWhenTheOneUnderWayDoesNotEnd) {
  const std::vector<Task> all = {{"chief", 0}, {"ps", 0}, {"worker", 0}};
  for (const Task& task : all) AddressOf(task);
  const config::TrainingConfig config =
      Config("max_steps: 1000000\nstrategy: {name: parameter_server, mode: sync}\n");
  Mortal ps(0, AddressOf({"ps", 0}));
  ps.Start(1);
  RunningTask chief(config, Static({"chief", 0}, all));
  std::vector<Tensor> values;
  std::unique_ptr<ps::ParameterClient> worker = *Stranger(config, values);
  const ps::StepResult last = TrainThreeSteps(*worker, values);
  ASSERT_TRUE(ps.AwaitGradient()) << "the chief is in its next step";
  EXPECT_EQ(chief.Stop().code(), StatusCode::kCancelled);
  EXPECT_EQ(LastCheckpoint(), last.global_step);
}

// The step in progress would end only after 60 s, when the stuck worker's lease expires.
TEST_F(RolesTest, AServerThatEndsWhileAWorkerIsStuckIsSavedAtTheLastWholeStep) {
  const std::vector<Task> all = {{"chief", 0}, {"ps", 0}, {"worker", 0}};
  for (const Task& task : all) AddressOf(task);
  const config::TrainingConfig config =
      Config("max_steps: 1000000\nstrategy: {name: parameter_server, mode: sync}\n");
  RunningTask ps(config, Static({"ps", 0}, all));
  RunningTask chief(config, Static({"chief", 0}, all));
  std::vector<Tensor> values;
  std::unique_ptr<ps::ParameterClient> worker = *Stranger(config, values);
  const ps::StepResult last = TrainThreeSteps(*worker, values);
  const Duration start = RealClock().Monotonic();
  EXPECT_EQ(ps.Stop().code(), StatusCode::kCancelled);
  EXPECT_LT(RealClock().Monotonic() - start, BudgetOf(30s).serving - 5s);
  while (LastCheckpoint() < last.global_step && RealClock().Monotonic() - start < 30s)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(LastCheckpoint(), last.global_step);
  worker.reset();
  EXPECT_EQ(chief.Stop().code(), StatusCode::kCancelled);
}

TEST_F(RolesTest, ASecondRunOverAFinishedFolderTrainsNoFurther) {
  const std::vector<Task> all = {{"ps", 0}, {"worker", 0}, {"worker", 1}, {"evaluator", 0}};
  for (const Task& task : all) AddressOf(task);
  int64_t step = -1;
  for (int run = 0; run < 2; ++run) {
    std::list<RunningTask> tasks;
    for (const Task& task : all)
      tasks.emplace_back(Config("max_steps: 100\n"), Static(task, all), run);
    for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
    EXPECT_TRUE(Finished("/model", run));
    EXPECT_TRUE(Finished("/model/eval", run));
    if (run == 1) {
      EXPECT_EQ(LastCheckpoint(), step);
    }
    step = LastCheckpoint();
    EXPECT_GE(step, 100);
  }
}

TEST_F(RolesTest, NumbersThatAreNotFiniteEndTheRunInAllTasksWithTheSameWords) {
  for (const Task& task : kAll) AddressOf(task);
  std::map<Task, std::string> words;
  // In the second iteration, all numbers are finite. The tasks fail only because the run has
  // already failed.
  for (int run = 0; run < 2; ++run) {
    std::list<RunningTask> tasks;
    for (const Task& task : kAll) {
      config::TrainingConfig config =
          Config(run == 0 ? "max_steps: 100000000\n" : "max_steps: 10\n");
      if (run == 0 && task == Task{"worker", 1}) config.data.train.weights = {1e30};
      tasks.emplace_back(std::move(config), Static(task, kAll));
    }
    auto task = kAll.begin();
    for (RunningTask& running : tasks) {
      const Status end = running.End();
      EXPECT_TRUE(state::IsRunFailure(end)) << running.Progress().task << ": " << end;
      EXPECT_TRUE(Message(end).starts_with("worker 1, step ")) << running.Progress().task << end;
      std::string& before = words[*task++];
      if (run == 1) {
        EXPECT_EQ(Message(end), before);
        EXPECT_EQ(running.Progress().state, progress::State::kStarting) << "it ends at once";
      }
      before = std::string(Message(end));
      EXPECT_EQ(before, words[kAll.front()]);
    }
  }
  EXPECT_FALSE(Finished("/model"));
}

TEST_F(RolesTest, AServerThatStartsAgainAfterTheLastCheckpointIsToldTheEnd) {
  const std::vector<Task> all = {{"chief", 0}, {"ps", 0}, {"evaluator", 0}};
  for (const Task& task : all) AddressOf(task);
  Mortal ps(0, AddressOf({"ps", 0}));
  ps.Start(1);
  RunningTask chief(Config("max_steps: 3\n"), Static({"chief", 0}, all));
  const auto eventually = [](const auto& condition) {
    const Duration deadline = RealClock().Monotonic() + 20s;
    while (!condition() && RealClock().Monotonic() < deadline) std::this_thread::sleep_for(5ms);
    return condition();
  };
  // The chief is now waiting for the evaluator.
  ASSERT_TRUE(eventually([&] { return Finished("/model"); }));
  ps.Kill();
  ASSERT_TRUE(MakeDirectories(folder_ + "/model/eval").ok());
  ASSERT_TRUE(MarkFinished(folder_ + "/model/eval", {"uid", 0}, 3, RealClock().Now()).ok());
  EXPECT_TRUE(eventually(
      [&] { return chief.Progress().waiting_for.find("cannot yet report") != std::string::npos; }));
  ps.Start(2);
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_EQ(ps.AwaitEnd(), OkStatus());
}

TEST_F(RolesTest, AThrottledEvaluatorLooksAtTheLastCheckpointAsSoonAsTheRunIsOver) {
  const std::vector<Task> all = {{"chief", 0}, {"evaluator", 0}};
  for (const Task& task : all) AddressOf(task);
  const config::TrainingConfig config = Config("eval: {throttle_secs: 3600}\n");
  const auto definition =
      DefineModel(config, Split::kTrain, **LoadDataset(config, Split::kTrain), 1);
  ASSERT_TRUE(definition.ok()) << definition.status();
  state::Snapshot snapshot = strategy::InitialState(*definition);
  const auto save = [&](int64_t step) {
    snapshot.global_step = step;
    return SaveCheckpoint(folder_ + "/model", definition->state, snapshot, 10, RealClock().Now());
  };
  ASSERT_TRUE(save(1).ok());
  RunningTask evaluator(config, Static({"evaluator", 0}, all));
  ASSERT_TRUE(evaluator.AwaitStep(1));
  for (int64_t step : {2, 3, 4}) ASSERT_TRUE(save(step).ok());
  ASSERT_TRUE(MarkFinished(folder_ + "/model", {"uid", 0}, 4, RealClock().Now()).ok());
  const Duration deadline = RealClock().Monotonic() + 20s;
  while (!Finished("/model/eval") && RealClock().Monotonic() < deadline)
    std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(Finished("/model/eval"));
  evaluator.Stop().IgnoreError();
  EXPECT_EQ(evaluator.Progress().step, 4);
}

TEST(TaskContext, TakesAnOlderMarkForAnOlderRunsUntilTheChiefHasHadTimeToRemoveIt) {
  StopSource stop;
  FakeClock clock(Time(1000s));
  TaskContext context({.tf_config = {.task = {"worker", 0}}}, stop, clock);
  EXPECT_EQ(context.run().oldest, Time(1000s));
  clock.Advance(59s);
  EXPECT_EQ(context.run().oldest, Time(1000s));
  clock.Advance(1s);
  EXPECT_EQ(context.run().oldest, Time());
}

TEST_F(RolesTest, WorkersOfASparseJobComeAndGo) {
  const std::string steps = "max_steps: 4000\n";
  for (const Task& task :
       std::vector<Task>{{"chief", 0}, {"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 3}}) {
    AddressOf(task);
  }
  RunningTask ps0(Config(steps), Sparse({"ps", 0}, "chief"));
  RunningTask ps1(Config(steps), Sparse({"ps", 1}, "chief"));
  // This worker starts before the chief, and must not be mistaken for the chief.
  RunningTask leaves(Config(steps), Sparse({"worker", 0}, "chief"));
  RunningTask chief(Config(steps), Sparse({"chief", 0}, "chief"));
  ASSERT_TRUE(leaves.AwaitStep(20));
  EXPECT_EQ(leaves.Stop().code(), StatusCode::kCancelled);
  RunningTask joins(Config(steps), Sparse({"worker", 3}, "chief"));
  EXPECT_EQ(joins.End(), OkStatus());
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_EQ(ps0.End(), OkStatus());
  EXPECT_EQ(ps1.End(), OkStatus());
  EXPECT_NEAR(Saved("dense/bias"), 10, 0.05);
}

TEST_F(RolesTest, ASparseSynchronousJobGoesOnWithTheWorkersThatThereAre) {
  const std::string text =
      "max_steps: 2000\nstrategy: {name: parameter_server, mode: sync, replicas_to_aggregate: 2}\n";
  for (const Task& task : std::vector<Task>{{"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}})
    AddressOf(task);
  RunningTask ps1(Config(text), Sparse({"ps", 1}, "worker"));
  RunningTask ps0(Config(text), Sparse({"ps", 0}, "worker"));
  RunningTask chief(Config(text), Sparse({"worker", 0}, "worker"));
  RunningTask worker(Config(text), Sparse({"worker", 1}, "worker"));
  ASSERT_TRUE(worker.AwaitStep(20));
  EXPECT_EQ(worker.Stop().code(), StatusCode::kCancelled);
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_EQ(ps0.End(), OkStatus());
  EXPECT_EQ(ps1.End(), OkStatus());
  EXPECT_EQ(LastCheckpoint(), 2000);
}

TEST_F(RolesTest, ASparseSynchronousJobMustSayHowManyGradientsAStepTakes) {
  AddressOf({"chief", 0});
  AddressOf({"ps", 0});
  AddressOf({"ps", 1});
  RunningTask chief(Config("max_steps: 10\nstrategy: {name: parameter_server, mode: sync}\n"),
                    Sparse({"chief", 0}, "chief"));
  const Status status = chief.End();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Message(status).starts_with("strategy.replicas_to_aggregate: ")) << status;
}

}  // namespace
}  // namespace tfjob::train
