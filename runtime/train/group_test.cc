// Trains with several tasks and without parameter servers (multi_worker_mirrored). The tasks are
// threads of one process, connected over loopback.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <tuple>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/state/run_failure.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/train/test_job.h"
#include "runtime/wire/test_connections.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::train {
namespace {

class GroupTest : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  // There are 50 examples, and 24 in each step. The last batch of an epoch therefore has only 2
  // examples, and one of the three tasks gets none.
  config::TrainingConfig Config(const std::string& model_dir, const std::string& more) const {
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: adam, learning_rate: 0.01}
data:
  train: {format: linear, weights: [2.0, -1.0], bias: 1.0, noise: 0.1, examples: 50}
threads: 1
seed: 5
save_checkpoints_steps: 1000000
log_step_count_steps: 0
model_dir: )",
                                    folder_, "/", model_dir, "\n", more);
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }

  // Returns the variables of the last checkpoint.
  std::vector<float> Variables(const std::string& model_dir, int64_t step) const {
    std::vector<float> values;
    auto reader = io::BundleReader::Open(io::CheckpointPrefix(folder_ + "/" + model_dir, step));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return values;
    for (const char* name : {"dense/kernel", "dense/bias"}) {
      const Tensor tensor = *(*reader)->Read(name);
      const auto part = tensor.data<float>();
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  const std::vector<Task> tasks_ = {{"chief", 0}, {"worker", 0}, {"worker", 1}};
  const std::string folder_ = testing::TempDir() + "/group_test";
};

TEST_F(GroupTest, ThreeTasksTrainLikeOneWithTheirGlobalBatch) {
  const config::TrainingConfig together = Config("together", "batch_size: 8\nepochs: 4\n");
  std::vector<cluster::TfConfig> clusters;
  for (const Task& task : tasks_) clusters.push_back(Static(task, tasks_));
  std::vector<std::unique_ptr<RunningTask>> running;
  for (const cluster::TfConfig& cluster : clusters) {
    running.push_back(std::make_unique<RunningTask>(together, cluster));
  }
  RunningTask alone(Config("alone", "batch_size: 24\nepochs: 4\n"), {});
  for (const auto& task : running) {
    ASSERT_TRUE(task->AwaitEnd());
    EXPECT_EQ(task->End(), OkStatus());
    EXPECT_EQ(task->Progress().max_steps, 12);
  }
  ASSERT_TRUE(alone.AwaitEnd());
  EXPECT_EQ(alone.End(), OkStatus());
  const std::vector<float> values = Variables("together", 12), expected = Variables("alone", 12);
  ASSERT_EQ(values.size(), 3u);
  ASSERT_EQ(expected.size(), 3u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
}

// The other tasks keep the state, and send it to the restarted worker.
TEST_F(GroupTest, AWorkerThatIsStoppedAndStartedAgainLosesNoStep) {
  const config::TrainingConfig config = Config("model", "batch_size: 8\nmax_steps: 20000\n");
  std::vector<cluster::TfConfig> clusters;
  for (const Task& task : tasks_) clusters.push_back(Static(task, tasks_));
  std::vector<std::unique_ptr<RunningTask>> running;
  for (const cluster::TfConfig& cluster : clusters) {
    running.push_back(std::make_unique<RunningTask>(config, cluster));
  }
  ASSERT_TRUE(running[0]->AwaitStep(100));
  EXPECT_EQ(running[2]->Stop().code(), StatusCode::kCancelled);
  const int64_t step = running[0]->Progress().step;
  ASSERT_LT(step, 20000);
  running[2] = std::make_unique<RunningTask>(config, clusters[2]);
  ASSERT_TRUE(running[2]->AwaitStep(step));
  for (const auto& task : running) {
    ASSERT_TRUE(task->AwaitEnd());
    EXPECT_EQ(task->End(), OkStatus());
    EXPECT_EQ(task->Progress().step, 20000);
  }
}

// A task whose disk or model_dir differs from that of the other tasks.
struct Special {
  size_t task = 0;
  FileSystem* files = &RealFileSystem();
  std::string model_dir;  // "": that of the other tasks
};

class TakeoverTest : public GroupTest {
 protected:
  void StartAll(const config::TrainingConfig& config, const Special& special = {}) {
    for (const Task& task : tasks_) clusters_.push_back(Static(task, tasks_));
    for (const cluster::TfConfig& cluster : clusters_) {
      TaskOptions options{.config = config, .tf_config = cluster, .job = {"uid", 0}};
      if (running_.size() == special.task) {
        options.files = special.files;
        if (!special.model_dir.empty()) options.config.model_dir = special.model_dir;
      }
      running_.push_back(std::make_unique<RunningTask>(std::move(options)));
    }
  }
  config::TrainingConfig Shrinking(const std::string& model_dir, int max_steps) const {
    return Config(model_dir,
                  StrCat("batch_size: 8\nmax_steps: ", max_steps,
                         "\nstrategy: {name: multi_worker_mirrored, on_failure: shrink}\n"));
  }
  int64_t LatestStep(const std::string& model_dir) const {
    const auto latest = io::LatestCheckpoint(folder_ + "/" + model_dir);
    return latest.ok() && *latest ? (*latest)->step : -1;
  }
  // Waits up to a minute for a checkpoint of a later step.
  bool AwaitCheckpointAfter(const std::string& model_dir, int64_t step) const {
    const Duration deadline = RealClock().Monotonic() + 60s;
    while (LatestStep(model_dir) <= step && RealClock().Monotonic() < deadline)
      std::this_thread::sleep_for(5ms);
    return LatestStep(model_dir) > step;
  }
  void ExpectNear(const std::vector<float>& values, const std::vector<float>& expected) {
    ASSERT_EQ(values.size(), 3u);
    ASSERT_EQ(expected.size(), 3u);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-3) << i;
  }

  std::vector<cluster::TfConfig> clusters_;
  std::vector<std::unique_ptr<RunningTask>> running_;
};

TEST_F(TakeoverTest, TheOthersGoOnAndSaveUntilTheChiefReturns) {
  constexpr int kSteps = 20000;
  config::TrainingConfig config = Shrinking("taken_over", kSteps);
  config.save_checkpoints_steps = 500;
  StartAll(config);
  ASSERT_TRUE(running_[0]->AwaitStep(100));
  EXPECT_EQ(running_[0]->Stop().code(), StatusCode::kCancelled);
  const int64_t saved = LatestStep("taken_over");
  EXPECT_GE(saved, 100) << "the chief saves when it is stopped";
  EXPECT_TRUE(AwaitCheckpointAfter("taken_over", saved)) << "worker 0 saves";
  EXPECT_GT(io::RecordedTerm(folder_ + "/taken_over").value(), 0);
  const int64_t alone = running_[1]->Progress().step;
  running_[0] = std::make_unique<RunningTask>(config, clusters_[0]);
  ASSERT_TRUE(running_[0]->AwaitStep(alone));
  EXPECT_LT(running_[0]->Progress().step, kSteps) << "the chief has returned too late";
  for (const auto& task : running_) {
    ASSERT_TRUE(task->AwaitEnd());
    EXPECT_EQ(task->End(), OkStatus());
    EXPECT_EQ(task->Progress().step, kSteps);
  }
  EXPECT_TRUE(running_[0]->Progress().run_end) << "the chief has ended the run";
  EXPECT_FALSE(running_[1]->Progress().run_end);
  const std::vector<float> values = Variables("taken_over", kSteps);
  running_.clear();
  clusters_.clear();
  StartAll(Shrinking("undisturbed", kSteps));
  for (const auto& task : running_) ASSERT_TRUE(task->AwaitEnd());
  ExpectNear(values, Variables("undisturbed", kSteps));
}

TEST_F(TakeoverTest, AnotherTaskEndsTheRunAndAChiefThatReturnsLaterEnds) {
  constexpr int kSteps = 3000;
  const config::TrainingConfig config = Shrinking("ended", kSteps);
  const RunMark earlier{.job_uid = "an earlier job"};
  ASSERT_TRUE(MakeDirectories(folder_ + "/ended/eval").ok());
  ASSERT_EQ(MarkFinished(folder_ + "/ended/eval", earlier, kSteps, Time(1s)), OkStatus());
  StartAll(config);
  ASSERT_TRUE(running_[0]->AwaitStep(10));
  EXPECT_EQ(running_[0]->Stop().code(), StatusCode::kCancelled);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    ASSERT_TRUE(running_[i]->AwaitEnd());
    EXPECT_EQ(running_[i]->End(), OkStatus());
  }
  EXPECT_TRUE(running_[1]->Progress().run_end);
  EXPECT_EQ(LatestStep("ended"), kSteps);
  EXPECT_EQ(*FinishedStep(folder_ + "/ended/eval", earlier), std::nullopt);
  RunningTask late(config, clusters_[0]);
  ASSERT_TRUE(late.AwaitEnd());
  EXPECT_EQ(late.End(), OkStatus());
  EXPECT_EQ(LatestStep("ended"), kSteps);
}

// Blocks every write of a checkpoint of this step until the test opens the gate.
class Gate : public faults::FaultyFiles {
 public:
  explicit Gate(int64_t step) : name_(StrCat("model.ckpt-", step, ".")) {}
  StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path) override {
    if (path.find(name_) != std::string::npos) {
      reached_.Set();
      open_.WaitFor(120s);
    }
    return FaultyFiles::Create(path);
  }
  void AwaitWrite() const { reached_.WaitFor(60s); }
  void Open() { open_.Set(); }

 private:
  const std::string name_;
  Event reached_, open_;
};

TEST_F(TakeoverTest, AChiefThatLosesItsMajorityDuringTheLastSaveJoinsAgain) {
  constexpr int kSteps = 30;
  Gate gate(kSteps);
  StartAll(Shrinking("cut_off", kSteps), {.task = 0, .files = &gate});
  gate.AwaitWrite();
  const auto saves = [this] { return running_[0]->Progress().state == progress::State::kSaving; };
  const Duration deadline = RealClock().Monotonic() + 60s;
  while (!saves() && RealClock().Monotonic() < deadline) std::this_thread::yield();
  EXPECT_GT(wire::BreakConnections(AddressOf(tasks_[0])), 0);
  while (saves() && RealClock().Monotonic() < deadline) std::this_thread::yield();
  EXPECT_LT(RealClock().Monotonic(), deadline) << "it joins again although the disk hangs";
  gate.Open();
  for (const auto& task : running_) {
    ASSERT_TRUE(task->AwaitEnd());
    EXPECT_EQ(task->End(), OkStatus());
  }
  EXPECT_EQ(LatestStep("cut_off"), kSteps);
  EXPECT_EQ(*FinishedStep(folder_ + "/cut_off", {"uid", 0}), kSteps);
}

// Worker 0 takes over the chief's duties, and hands them back, while its disk hangs.
TEST_F(TakeoverTest, TheDiskOfATaskThatTakesOverStopsNoStep) {
  static faults::FaultyFiles disk;  // its last write may end after the test
  config::TrainingConfig config = Shrinking("hangs", 100'000'000);
  StartAll(config, {.task = 1, .files = &disk});
  ASSERT_TRUE(running_[0]->AwaitStep(100));
  disk.Hang(true);
  EXPECT_EQ(running_[0]->Stop().code(), StatusCode::kCancelled);
  EXPECT_TRUE(disk.AwaitHangingWrite()) << "worker 0 takes over";
  const int64_t alone = running_[2]->Progress().step;
  EXPECT_TRUE(running_[2]->AwaitStep(alone + 500));
  const Duration began = RealClock().Monotonic();
  running_[0] = std::make_unique<RunningTask>(config, clusters_[0]);
  EXPECT_TRUE(running_[0]->AwaitStep(alone + 1000));
  EXPECT_LT(RealClock().Monotonic() - began, 45s) << "the return does not wait for the disk";
  disk.Hang(false);
}

// Worker 0 takes over the chief's duties, but cannot write to its model_dir.
TEST_F(TakeoverTest, AWorkerWhoseTakeoverFailsTrainsOn) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/file", "").ok());
  config::TrainingConfig config = Shrinking("fails", 100'000'000);
  StartAll(config, {.task = 1, .model_dir = folder_ + "/file/model"});
  ASSERT_TRUE(running_[0]->AwaitStep(100));
  EXPECT_EQ(running_[0]->Stop().code(), StatusCode::kCancelled);
  EXPECT_TRUE(running_[1]->Await(
      [](const progress::Progress& p) { return p.problems.contains("checkpoints"); }));
  const int64_t alone = running_[2]->Progress().step;
  EXPECT_TRUE(running_[2]->AwaitStep(alone + 500));
  running_[0] = std::make_unique<RunningTask>(config, clusters_[0]);
  EXPECT_TRUE(running_[0]->AwaitStep(alone + 1000));
  EXPECT_TRUE(running_[1]->Await([](const progress::Progress& p) {
    return !p.problems.contains("checkpoints");
  })) << "the duties are the chief's again";
}

// If the tasks did not share the folder, a chief that was restarted after the end of the run would
// wait forever.
TEST_F(TakeoverTest, EveryTaskMustShareTheFolder) {
  StartAll(Shrinking("own", 100'000'000), {.task = 1, .model_dir = folder_ + "/another"});
  for (const auto& task : running_) {
    ASSERT_TRUE(task->AwaitEnd());
    const Status end = task->End();
    EXPECT_TRUE(state::IsRunFailure(end)) << end;
    EXPECT_NE(Message(end).find("worker/task:0 does not see in " + folder_ + "/another what"),
              std::string::npos)
        << end;
    EXPECT_NE(Message(end).find("mount the same volume in all tasks"), std::string::npos) << end;
  }
}

// A replacement task whose volume is missing exits with an error, and the other tasks keep running.
TEST_F(TakeoverTest, AReplacementThatDoesNotShareTheFolderIsKeptOut) {
  config::TrainingConfig config = Shrinking("shared", 100'000'000);
  StartAll(config);
  ASSERT_TRUE(running_[0]->AwaitStep(100));
  EXPECT_EQ(running_[2]->Stop().code(), StatusCode::kCancelled);
  config.model_dir = folder_ + "/another";
  running_[2] = std::make_unique<RunningTask>(config, clusters_[2]);
  ASSERT_TRUE(running_[2]->AwaitEnd());
  const Status end = running_[2]->End();
  EXPECT_EQ(end.code(), StatusCode::kUnavailable) << end;
  EXPECT_NE(Message(end).find("worker/task:1 does not see in " + folder_ + "/another what"),
            std::string::npos)
      << end;
  running_.pop_back();
  for (const auto& task : running_)
    EXPECT_TRUE(task->AwaitStep(task->Progress().step + 500)) << "the others go on";
}

// The disk is full when the run begins. The claim comes with the first checkpoint; replacements
// must then share the folder.
TEST_F(TakeoverTest, AClaimThatCouldNotBeWrittenComesWithACheckpoint) {
  static faults::FaultyFiles disk;  // its last write may end after the test
  disk.Fill(true);
  config::TrainingConfig config = Shrinking("late_claim", 100'000'000);
  StartAll(config, {.task = 0, .files = &disk});
  ASSERT_TRUE(running_[0]->AwaitStep(100));
  const std::string claim = folder_ + "/late_claim/group.json";
  EXPECT_FALSE(std::filesystem::exists(claim));
  disk.Fill(false);
  ASSERT_TRUE(AwaitCheckpointAfter("late_claim", -1));
  EXPECT_TRUE(std::filesystem::exists(claim));
  ASSERT_TRUE(running_[0]->AwaitStep(running_[0]->Progress().step + 100));
  EXPECT_EQ(running_[2]->Stop().code(), StatusCode::kCancelled);
  config.model_dir = folder_ + "/another_folder";
  running_[2] = std::make_unique<RunningTask>(config, clusters_[2]);
  ASSERT_TRUE(running_[2]->AwaitEnd());
  EXPECT_EQ(running_[2]->End().code(), StatusCode::kUnavailable) << running_[2]->End();
}

TEST_F(TakeoverTest, WithoutAFolderATaskEndsAtOnce) {
  config::TrainingConfig config = Shrinking("none", 100);
  config.model_dir = "";
  StartAll(config);
  for (const auto& task : running_) {
    ASSERT_TRUE(task->AwaitEnd());
    const Status end = task->End();
    EXPECT_EQ(end.code(), StatusCode::kInvalidArgument) << end;
    EXPECT_NE(Message(end).find("set model_dir"), std::string::npos) << end;
  }
}

// The chief loses its connections for a moment. All tasks repeat the steps since the last
// checkpoint, with the same result.
TEST_F(TakeoverTest, AfterALossAGroupThatRestartsGoesBackToTheLastCheckpoint) {
  constexpr int kSteps = 5000;
  const std::string restarts =
      StrCat("batch_size: 8\nmax_steps: ", kSteps,
             "\nstrategy: {name: multi_worker_mirrored, on_failure: restart}\n");
  testing::internal::CaptureStderr();
  StartAll(Config("restarted", restarts));
  ASSERT_TRUE(running_[0]->AwaitStep(1000));
  EXPECT_GT(wire::BreakConnections(AddressOf(tasks_[0])), 0);
  for (const auto& task : running_) {
    ASSERT_TRUE(task->AwaitEnd());
    EXPECT_EQ(task->End(), OkStatus());
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("the group goes back to a saved state step=0 steps_lost="), std::string::npos)
      << log;
  const std::vector<float> values = Variables("restarted", kSteps);
  running_.clear();
  clusters_.clear();
  StartAll(Config("undisturbed", restarts));
  for (const auto& task : running_) ASSERT_TRUE(task->AwaitEnd());
  EXPECT_EQ(values, Variables("undisturbed", kSteps));
}

TEST_F(GroupTest, RefusesATaskWithAnotherTrainingFile) {
  std::vector<cluster::TfConfig> clusters;
  const std::vector<Task> two = {{"chief", 0}, {"worker", 0}};
  for (const Task& task : two) clusters.push_back(Static(task, two));
  const config::TrainingConfig config = Config("model", "batch_size: 8\nepochs: 1\n");
  RunningTask chief(config, clusters[0]);
  config::TrainingConfig batch = config, epochs = config, examples = config, order = config;
  batch.batch_size = 9;
  epochs.epochs = 2;
  examples.data.train.examples = 51;
  order.data.shuffle = false;
  const std::tuple<config::TrainingConfig, const char*, const char*> cases[] = {
      {batch, "'global batch: 16'", "'global batch: 18'"},
      {epochs, "'epochs: 1'", "'epochs: 2'"},
      {examples, "'examples of data.train: 50'", "'examples of data.train: 51'"},
      {order, "'data.shuffle: true'", "'data.shuffle: false'"}};
  for (const auto& [other, expected, actual] : cases) {
    RunningTask worker(other, clusters[1]);
    ASSERT_TRUE(worker.AwaitEnd()) << actual;
    const Status refused = worker.End();
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
    EXPECT_NE(Message(refused).find(expected), std::string::npos) << refused;
    EXPECT_NE(Message(refused).find(actual), std::string::npos) << refused;
  }
  EXPECT_EQ(chief.Stop().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace tfjob::train
