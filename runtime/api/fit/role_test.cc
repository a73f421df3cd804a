// Runs whole jobs with parameter servers and an evaluator, each task on its own thread, and
// compares the results with those of tfjob-trainer for the same jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <latch>
#include <thread>

#include "runtime/api/access.h"
#include "runtime/api/layers.h"
#include "runtime/api/losses.h"
#include "runtime/api/optimizers.h"
#include "runtime/io/npy.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/train/test_job.h"

namespace tfjob::api {
namespace {

using cluster::Task;

constexpr int64_t kExamples = 96;

tfjob::Tensor JobFeatures() {
  tfjob::Tensor x(tfjob::DType::kFloat32, {kExamples, 3});
  for (size_t i = 0; i < x.data<float>().size(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 37 + 11) % 100) / 100;
  return x;
}

tfjob::Tensor JobClasses() {
  tfjob::Tensor y(tfjob::DType::kInt64, {kExamples});
  for (size_t i = 0; i < y.data<int64_t>().size(); ++i)
    y.data<int64_t>()[i] = static_cast<int64_t>(i * 7 % 4);
  return y;
}

Dataset JobData() {
  return data::Arrays{.x = Access::MakeTensor(JobFeatures()),
                      .y = Access::MakeTensor(JobClasses())};
}

std::string Folder(const std::string& name) {
  const std::string path = StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

// Returns the strategy that Strategy::ParameterServer would return in a task with this TF_CONFIG.
Strategy StrategyOf(const cluster::TfConfig& tf_config, const std::string& mode) {
  StrategyData data;
  data.tf_config = tf_config;
  data.job = {"uid", 0};
  data.config.kind = config::StrategyKind::kParameterServer;
  data.config.mode = mode == "sync" ? config::PsMode::kSync : config::PsMode::kAsync;
  return Access::MakeStrategy(std::move(data));
}

CompiledModel CompiledWith(const Strategy& strategy) {
  return Session(strategy, {.seed = 5, .threads = 1})
      .Compile(Sequential({Dense{.units = 8, .activation = "relu"}, Dense{.units = 4}}),
               {.optimizer = Adam{.learning_rate = 0.01},
                .loss = SparseCategoricalCrossentropy{.from_logits = true},
                .metrics = {"accuracy"}})
      .value();
}

struct JobTask {
  Task task;
  CompiledModel model;
  Result<History> history = Status(StatusCode::kUnknown, "not run");
};

// A job whose tasks call Fit with the same arguments.
class ApiJob {
 public:
  ApiJob(const std::vector<Task>& tasks, const std::string& mode) {
    for (const Task& task : tasks)
      tasks_.push_back({task, CompiledWith(StrategyOf(cluster_.Static(task, tasks), mode))});
  }
  ApiJob(const std::vector<Task>& tasks, const std::vector<Strategy>& strategies) {
    for (size_t i = 0; i < tasks.size(); ++i)
      tasks_.push_back({tasks[i], CompiledWith(strategies[i])});
  }

  void Fit(const FitOptions& options) {
    const Dataset data = JobData();
    std::vector<std::thread> threads;
    for (JobTask& task : tasks_)
      threads.emplace_back([&] { task.history = task.model.Fit(data, options); });
    for (std::thread& thread : threads) thread.join();
  }

  JobTask& operator[](size_t index) { return tasks_[index]; }

 private:
  train::TestCluster cluster_;
  std::vector<JobTask> tasks_;
};

const std::vector<Task>& FourTasks() {
  static const auto* const kTasks =
      new std::vector<Task>{{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}};
  return *kTasks;
}

FitOptions TwoEpochs() {
  return {.batch_size = 16, .epochs = 2, .verbose = Verbose::kSilent};
}

// Returns the config of the same job for tfjob-trainer.
StatusOr<config::TrainingConfig> ConfigOfTrainer(const std::string& folder) {
  RETURN_IF_ERROR(io::WriteNpy(folder + "/x.npy", JobFeatures()));
  RETURN_IF_ERROR(io::WriteNpy(folder + "/y.npy", JobClasses()));
  return config::ParseTrainingConfig(
      StrCat("model: {layers: [{Dense: {units: 8, activation: relu}}, {Dense: {units: 4}}]}\n"
             "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n"
             "optimizer: {name: adam, learning_rate: 0.01}\n"
             "data: {train: {format: npz, inputs: ",
             folder, "/x.npy, targets: ", folder,
             "/y.npy}}\nstrategy: {name: parameter_server, mode: sync}\n"
             "global_batch_size: 16\nepochs: 2\nseed: 5\nthreads: 1\nmodel_dir: ",
             folder, "/run\n"),
      "training.yaml");
}

// Runs the job as tfjob-trainer does, and returns its last checkpoint.
StatusOr<state::Snapshot> TrainedByTrainer(const std::string& folder) {
  ASSIGN_OR_RETURN(const config::TrainingConfig config, ConfigOfTrainer(folder));
  train::TestCluster addresses;
  std::vector<std::unique_ptr<train::RunningTask>> running;
  for (const Task& task : FourTasks()) {
    running.push_back(
        std::make_unique<train::RunningTask>(config, addresses.Static(task, FourTasks())));
  }
  for (const auto& task : running) RETURN_IF_ERROR(task->End());
  ASSIGN_OR_RETURN(const auto source, train::LoadDataset(config, train::Split::kTrain));
  ASSIGN_OR_RETURN(const auto definition,
                   train::DefineModel(config, train::Split::kTrain, *source, 2));
  ASSIGN_OR_RETURN(auto saved, train::LoadLatestCheckpoint(folder + "/run", definition.state));
  return *std::move(saved);
}

TEST(ParameterServers, SynchronousTasksHaveTheBitsOfTheTrainersJob) {
  const StatusOr<state::Snapshot> expected = TrainedByTrainer(Folder("trainer"));
  ASSERT_TRUE(expected.ok()) << expected.status();
  ApiJob job(FourTasks(), "sync");
  job.Fit(TwoEpochs());
  ASSERT_TRUE(job[0].history.ok()) << job[0].history.status();
  EXPECT_EQ(job[0].history->epoch, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(job[0].model.step(), expected->global_step);
  const auto weights = job[0].model.Weights().value();
  ASSERT_EQ(weights.size(), expected->variables.size());
  for (size_t v = 0; v < weights.size(); ++v) {
    EXPECT_TRUE(std::ranges::equal(weights[v].second.bytes(), expected->variables[v].value.bytes()))
        << weights[v].first;
  }
  EXPECT_TRUE(Access::IsJobOver(job[1].history.status())) << job[1].history.status();
}

TEST(ParameterServers, AServerHasNoModelAndSaysSo) {
  ApiJob job({{"chief", 0}, {"ps", 0}}, "async");
  job.Fit(TwoEpochs());
  ASSERT_TRUE(job[0].history.ok()) << job[0].history.status();
  const Status served = job[1].history.status();
  EXPECT_EQ(served.code(), StatusCode::kCancelled);
  EXPECT_TRUE(Access::IsJobOver(served));
  EXPECT_NE(served.message().find("/job:ps/task:0 has served variables"), std::string::npos)
      << served;
  EXPECT_FALSE(job[1].model.Weights().ok());
  EXPECT_EXIT(served.value(), testing::ExitedWithCode(0), "^the job has ended");
  EXPECT_EQ(job[0].model.Fit(JobData(), TwoEpochs()).status().code(), StatusCode::kUnimplemented);
}

TEST(ParameterServers, AServerNeedsNoModel) {
  train::TestCluster addresses;
  const std::vector<Task> tasks = {{"chief", 0}, {"ps", 0}};
  const Session session(StrategyOf(addresses.Static(tasks[1], tasks), "async"), {.threads = 1});
  const Strategy of_chief = StrategyOf(addresses.Static(tasks[0], tasks), "async");
  CompiledModel chief = CompiledWith(of_chief);
  EXPECT_TRUE(Session(of_chief).ServeVariables().ok()) << "the chief serves nothing";
  Status served;
  std::thread server([&] { served = session.ServeVariables(); });
  const auto history = chief.Fit(JobData(), TwoEpochs());
  server.join();
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_TRUE(Access::IsJobOver(served)) << served;
  const Status again = session.ServeVariables();
  EXPECT_EQ(again.code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(again.message().starts_with("this process has already taken part")) << again;
}

TEST(ParameterServers, AServerThatIsStartedAgainLearnsThatItsJobHasFailed) {
  const std::string folder = Folder("failed");
  std::filesystem::create_directories(folder + "/fit-backup");
  ASSERT_TRUE(train::MarkFailed(folder + "/fit-backup", {.job_uid = "uid"},
                                {.step = 3, .failure = "the loss is not finite"}, RealClock().Now())
                  .ok());
  ApiJob job({{"chief", 0}, {"ps", 0}}, "async");
  FitOptions options = TwoEpochs();
  options.callbacks = {BackupAndRestore{.backup_dir = folder}};
  const Status served = job[1].model.Fit(JobData(), options).status();
  EXPECT_NE(served.message().find("the loss is not finite"), std::string::npos) << served;
  EXPECT_FALSE(Access::IsJobOver(served));
}

TEST(ParameterServers, WithoutEpochsNoTaskWaits) {
  ApiJob job({{"chief", 0}, {"ps", 0}}, "async");
  FitOptions options = TwoEpochs();
  options.initial_epoch = 2;
  job.Fit(options);
  ASSERT_TRUE(job[0].history.ok()) << job[0].history.status();
  EXPECT_TRUE(job[0].history->epoch.empty());
  EXPECT_TRUE(Access::IsJobOver(job[1].history.status())) << job[1].history.status();
}

// Returns the strategy of a task under enableDynamicWorker. Each step aggregates two gradients.
Strategy DynamicStrategy(train::TestCluster& addresses, const Task& task) {
  std::string worker, chief;
  const std::string own = StrCat("\"", addresses.AddressOf(task), "\"");
  if (task.type == "worker") worker = StrCat("\"", task.index, "\":", own);
  if (task.type == "chief") chief = StrCat(",\"chief\":[", own, "]");
  auto tf_config = cluster::ParseTfConfig(
      StrCat(R"({"cluster":{"worker":{)", worker, R"(},"ps":[")", addresses.AddressOf({"ps", 0}),
             "\"]", chief, R"(},"task":{"type":")", task.type, R"(","index":)", task.index, "}}"));
  EXPECT_TRUE(tf_config.ok()) << tf_config.status();
  tf_config->chief_type = "chief";
  StrategyData data;
  data.tf_config = *std::move(tf_config);
  data.job = {"uid", 0};
  data.config.kind = config::StrategyKind::kParameterServer;
  data.config.mode = config::PsMode::kSync;
  data.config.replicas_to_aggregate = 2;
  return Access::MakeStrategy(std::move(data));
}

TEST(ParameterServers, DynamicWorkersTrainWithBatchesOfTheirOwn) {
  train::TestCluster addresses;
  const std::vector<Task> tasks = {{"chief", 0}, {"worker", 2}, {"ps", 0}};
  std::vector<Strategy> strategies;
  for (const Task& task : tasks) strategies.push_back(DynamicStrategy(addresses, task));
  ApiJob job(tasks, strategies);
  FitOptions options = TwoEpochs();
  options.steps_per_epoch = 5;
  std::latch joined(2);  // a late worker would not learn that the job is over
  options.callbacks = {LambdaCallback{.on_train_begin = [&](FitControl&) {
    joined.arrive_and_wait();
    return Status();
  }}};
  job.Fit(options);
  ASSERT_TRUE(job[0].history.ok()) << job[0].history.status();
  EXPECT_EQ(job[0].model.step(), 10);
  EXPECT_TRUE(Access::IsJobOver(job[1].history.status())) << job[1].history.status();
  EXPECT_TRUE(Access::IsJobOver(job[2].history.status())) << job[2].history.status();
  EXPECT_EQ(job[0].model.Fit(JobData(), options).status().code(), StatusCode::kUnimplemented);
}

TEST(ParameterServers, AsynchronousTasksTrainUntilTheLastStep) {
  ApiJob job(FourTasks(), "async");
  FitOptions options = TwoEpochs();
  options.epochs = 60;
  job.Fit(options);
  ASSERT_TRUE(job[0].history.ok()) << job[0].history.status();
  // Each step applies the gradient of one task, which is computed from half a batch.
  EXPECT_GE(job[0].model.step(), 60 * 12);
  EXPECT_TRUE(Access::IsJobOver(job[1].history.status())) << job[1].history.status();
  const History& history = *job[0].history;
  EXPECT_LT(history.values.at("loss").back(), history.values.at("loss").front());
}

TEST(ParameterServers, ValidationUsesTheValuesOnTheServers) {
  const Dataset data = JobData();
  ApiJob job(FourTasks(), "sync");
  FitOptions options = TwoEpochs();
  options.validation = &data;
  job.Fit(options);
  ASSERT_TRUE(job[0].history.ok()) << job[0].history.status();
  const History& history = *job[0].history;
  EXPECT_FALSE(job[1].model.history().values.contains("val_loss"))
      << "only the chief has the values";
  EXPECT_DOUBLE_EQ(history.values.at("val_loss").back(),
                   job[0].model.Evaluate(data, {.batch_size = 16}).value()["loss"]);
}

TEST(ParameterServers, BatchesAreDividedEqually) {
  ApiJob job(FourTasks(), "sync");
  FitOptions options = TwoEpochs();
  options.batch_size = 15;
  const Status refused = job[1].model.Fit(JobData(), options).status();
  EXPECT_EQ(refused.message(),
            "batch_size: with parameter servers, expected a multiple of the 2 tasks that train, "
            "got 15");
}

TEST(ParameterServers, LargeTablesAreReadAtTheEnd) {
  train::TestCluster addresses;
  const std::vector<Task> tasks = {{"chief", 0}, {"ps", 0}};
  std::vector<JobTask> running;
  for (const Task& task : tasks) {
    StrategyData data;
    data.tf_config = addresses.Static(task, tasks);
    data.job = {"uid", 0};
    data.config.table_bytes = 64;
    running.push_back(
        {task, Session(Access::MakeStrategy(std::move(data)), {.seed = 5, .threads = 1})
                   .Compile(Sequential({Input{.shape = {3}, .dtype = "int64"},
                                        Embedding{.input_dim = 50, .output_dim = 4}, Flatten{},
                                        Dense{.units = 4}}),
                            {.optimizer = Adam{.learning_rate = 0.01},
                             .loss = SparseCategoricalCrossentropy{.from_logits = true}})
                   .value()});
  }
  tfjob::Tensor ids(tfjob::DType::kInt64, {kExamples, 3});
  for (size_t i = 0; i < ids.data<int64_t>().size(); ++i)
    ids.data<int64_t>()[i] = static_cast<int64_t>(i * 13 % 50);
  const Dataset data =
      data::Arrays{.x = Access::MakeTensor(ids), .y = Access::MakeTensor(JobClasses())};
  CompiledModel alone = Session(Strategy::OneDevice(), {.seed = 5, .threads = 1})
                            .Compile(running[0].model.model(),
                                     {.optimizer = Adam{.learning_rate = 0.01},
                                      .loss = SparseCategoricalCrossentropy{.from_logits = true}})
                            .value();
  std::thread server([&] { running[1].history = running[1].model.Fit(data, TwoEpochs()); });
  running[0].history = running[0].model.Fit(data, TwoEpochs());
  server.join();
  ASSERT_TRUE(running[0].history.ok()) << running[0].history.status();
  ASSERT_TRUE(alone.Fit(data, TwoEpochs()).ok());
  const auto expected = alone.Weights().value(), got = running[0].model.Weights().value();
  for (size_t v = 0; v < expected.size(); ++v) {
    ASSERT_EQ(got[v].second.shape(), expected[v].second.shape());
    for (size_t e = 0; e < static_cast<size_t>(expected[v].second.size()); ++e)
      EXPECT_NEAR(got[v].second.float32()[e], expected[v].second.float32()[e], 1e-5);
  }
}

TEST(Evaluator, EvaluatesTheCheckpointsOfItsJob) {
  const std::string folder = Folder("evaluated");
  const Dataset data = JobData();
  ApiJob job({{"chief", 0}, {"worker", 0}, {"ps", 0}, {"evaluator", 0}}, "sync");
  FitOptions options = TwoEpochs();
  options.validation = &data;
  options.callbacks = {BackupAndRestore{.backup_dir = folder}};
  options.verbose = Verbose::kEpochs;
  testing::internal::CaptureStdout();
  job.Fit(options);
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(job[0].history.ok()) << job[0].history.status();
  EXPECT_FALSE(job[0].history->values.contains("val_loss")) << "that is the evaluator's work";
  const Status evaluated = job[3].history.status();
  EXPECT_TRUE(Access::IsJobOver(evaluated)) << evaluated;
  EXPECT_NE(evaluated.message().find("has evaluated checkpoints"), std::string::npos) << evaluated;
  // The state after the last step is always evaluated. 96 examples in batches of 16 are 6 steps per
  // epoch, and there are two epochs.
  EXPECT_NE(printed.find("step 12 - accuracy: "), std::string::npos) << printed;
  EXPECT_TRUE(std::filesystem::exists(folder + "/fit-backup/model.ckpt-12.index"))
      << "a job keeps its backup";
  EXPECT_TRUE(std::filesystem::exists(folder + "/fit-backup/eval/finished.json"));
}

TEST(Evaluator, NeedsCheckpointsAndExamples) {
  ApiJob job({{"chief", 0}, {"ps", 0}, {"evaluator", 0}}, "sync");
  for (const size_t task : {size_t{0}, size_t{2}}) {
    const Status refused = job[task].model.Fit(JobData(), TwoEpochs()).status();
    EXPECT_NE(refused.message().find("callbacks: the job has an evaluator"), std::string::npos)
        << refused;
  }
  FitOptions options = TwoEpochs();
  options.callbacks = {BackupAndRestore{.backup_dir = Folder("unused")}};
  EXPECT_NE(job[2].model.Fit(JobData(), options).status().message().find("validation: expected"),
            std::string::npos);
  options.validation_split = 0.5;
  for (const size_t task : {size_t{0}, size_t{1}, size_t{2}}) {
    const Status refused = job[task].model.Fit(JobData(), options).status();
    EXPECT_EQ(refused.code(), StatusCode::kUnimplemented) << refused;
    EXPECT_TRUE(refused.message().starts_with("validation_split: ")) << refused;
  }
}

}  // namespace
}  // namespace tfjob::api
