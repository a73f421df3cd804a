// Asks individual tasks of a running job, and then all of them, to stop, as SIGTERM does. No step
// that was completed before the request may be lost. The tasks run as threads of one process.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <list>
#include <map>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/train/task.h"
#include "runtime/wire/test_address.h"

namespace tfjob::train {
namespace {

using cluster::Task;

template <typename Condition>
bool Eventually(const Condition& condition) {
  const Duration deadline = RealClock().Monotonic() + 30s;
  while (!condition() && RealClock().Monotonic() < deadline) std::this_thread::sleep_for(2ms);
  return condition();
}

class EndingTask {
 public:
  EndingTask(config::TrainingConfig config, cluster::TfConfig tf_config, Duration grace)
      : context_({.config = std::move(config),
                  .tf_config = std::move(tf_config),
                  .job = {"uid", 0},
                  .grace_period = grace},
                 stop_, RealClock()),
        thread_([this] {
          status_ = RunTask(context_);
          ended_at_ = RealClock().Monotonic();
        }) {}
  ~EndingTask() {
    Ask();
    if (thread_.joinable()) thread_.join();
  }

  void Ask() { stop_.Request(SIGTERM); }
  Status End() {
    thread_.join();
    return status_;
  }
  progress::Progress Progress() { return context_.board().Get(); }
  int64_t Step() { return Progress().step; }
  Duration ended_at() const { return ended_at_; }

 private:
  StopSource stop_;
  TaskContext context_;
  Status status_;
  Duration ended_at_{0};
  std::thread thread_;
};

class EndingTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    for (const Task& task : kAll) addresses_[task] = wire::TestAddress();
    for (const Task& task : kAll) Start(task);
    ASSERT_TRUE(Eventually([&] { return tasks_.at({"worker", 0})->Step() >= 20; }));
    ASSERT_TRUE(Eventually([&] { return LastCheckpoint() >= 0; })) << "the first one";
  }

  void TearDown() override {
    for (auto& [task, running] : tasks_) running->Ask();
  }

  config::TrainingConfig Config() const {
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1, kernel_initializer: zeros}}]}
loss: mean_squared_error
optimizer: {name: adam, learning_rate: 0.001}
data:
  train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 64}
batch_size: 8
threads: 1
max_steps: 1000000000
save_checkpoints_steps: 1000000000
log_step_count_steps: 0
strategy: {name: parameter_server, mode: )",
                                    GetParam(), "}\nmodel_dir: ", folder_, "/model\n");
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  void Start(const Task& task) {
    std::map<std::string, cluster::Job> jobs;
    for (const Task& one : kAll) {
      jobs[one.type].name = one.type;
      jobs[one.type].addresses[one.index] = addresses_[one];
    }
    cluster::TfConfig config{.task = task};
    for (auto& [name, job] : jobs) config.cluster.jobs.push_back(std::move(job));
    tasks_[task] = std::make_unique<EndingTask>(Config(), std::move(config), kGrace);
  }
  EndingTask& The(const Task& task) { return *tasks_.at(task); }
  int64_t LastCheckpoint() const {
    auto latest = io::LatestCheckpoint(folder_ + "/model");
    return latest.ok() && *latest ? (*latest)->step : -1;
  }

  static constexpr Duration kGrace = 60s;
  const Task kChief{"chief", 0}, kPs0{"ps", 0}, kPs1{"ps", 1}, kWorker{"worker", 0};
  const std::vector<Task> kAll = {kChief, kPs0, kPs1, kWorker};
  const std::string folder_ =
      StrCat(testing::TempDir(), "/ending_test_", GetParam(), "_", getpid());
  std::map<Task, std::string> addresses_;
  std::map<Task, std::unique_ptr<EndingTask>> tasks_;
};

TEST_P(EndingTest, AServerLeavesItsStateWithTheChiefAndTheJobGoesOnFromThere) {
  for (const Task& task : {kPs1, kPs0}) {
    const int64_t asked = The(kPs0).Step();
    The(task).Ask();
    EXPECT_EQ(The(task).End().code(), StatusCode::kCancelled);
    ASSERT_TRUE(Eventually([&] { return LastCheckpoint() >= asked; })) << LastCheckpoint();
    const int64_t saved = LastCheckpoint();
    // In asynchronous mode, ps 0 may count further steps after its own state has been copied and
    // before ps 1's state is copied.
    if (task == kPs1 && GetParam() == std::string("sync"))
      EXPECT_EQ(The(kPs0).Step(), saved) << "a step was taken after the last copy";
    Start(task);
    EXPECT_TRUE(Eventually([&] { return The(kWorker).Step() > saved + 20; }));
    EXPECT_EQ(LastCheckpoint(), saved) << "it is saved once";
  }
}

TEST_P(EndingTest, AWorkerThatEndsMakesTheChiefSaveOnceAndTheOthersGoOn) {
  const int64_t asked = The(kPs0).Step();
  const int64_t before = LastCheckpoint();
  ASSERT_LT(before, asked);
  The(kWorker).Ask();
  EXPECT_EQ(The(kWorker).End().code(), StatusCode::kCancelled);
  ASSERT_TRUE(Eventually([&] { return LastCheckpoint() > before; }));
  const int64_t saved = LastCheckpoint();
  EXPECT_GE(saved, asked);
  EXPECT_TRUE(Eventually([&] { return The(kChief).Step() > saved + 20; }));
  Start(kWorker);
  EXPECT_TRUE(Eventually([&] { return The(kWorker).Step() > saved + 40; }));
  EXPECT_EQ(LastCheckpoint(), saved);
}

TEST_P(EndingTest, AChiefSavesItsLastStep) {
  const int64_t asked = The(kPs0).Step();
  The(kChief).Ask();
  EXPECT_EQ(The(kChief).End().code(), StatusCode::kCancelled);
  EXPECT_GE(LastCheckpoint(), asked);
}

TEST_P(EndingTest, AWholeJobSavesAndItsServersEndLast) {
  const std::vector<Task> order = {kPs0, kPs1, kWorker, kChief};
  const int64_t asked = The(kPs0).Step();
  const Duration start = RealClock().Monotonic();
  for (const Task& task : order) The(task).Ask();
  for (const Task& task : order) {
    EXPECT_EQ(The(task).End().code(), StatusCode::kCancelled) << task.type << task.index;
    EXPECT_LT(The(task).ended_at() - start, BudgetOf(kGrace).serving) << task.type << task.index;
  }
  EXPECT_GE(LastCheckpoint(), asked);
}

TEST_P(EndingTest, AServerWithoutTasksEndsAtOnce) {
  for (const Task& task : {kWorker, kChief}) {
    The(task).Ask();
    (void)The(task).End();
  }
  const Duration start = RealClock().Monotonic();
  The(kPs0).Ask();
  EXPECT_EQ(The(kPs0).End().code(), StatusCode::kCancelled);
  EXPECT_LT(The(kPs0).ended_at() - start, 10s);
}

INSTANTIATE_TEST_SUITE_P(, EndingTest, testing::Values("async", "sync"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace tfjob::train
