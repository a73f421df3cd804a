// Runs jobs whose tasks take part in several runs, one after another (RunOrder). The tasks run as
// threads of one process.
#include <gtest/gtest.h>

#include <filesystem>
#include <list>

#include "runtime/base/file.h"
#include "runtime/config/training_config.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

class RunOrderTest : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  // Returns the training file of the run with this number. Each run has its own folder.
  config::TrainingConfig Config(int run) const {
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
data:
  train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 64}
batch_size: 8
max_steps: 20
threads: 1
model_dir: )",
                                    folder_, "/", run, "\n");
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }

  TaskOptions Options(const Task& task, const std::vector<Task>& all, int run) {
    TaskOptions options{.config = Config(run), .tf_config = Static(task, all), .job = {"uid", 0}};
    options.order.number = run;
    options.order.followed = run == 0;
    options.order.earlier_ends.assign(static_cast<size_t>(run), 20);
    return options;
  }

  // Starts the chief in run 1 and the other tasks in run 0, as if they had been started again. Then
  // starts these tasks in run 1.
  void StartAgainDuringTheSecondRun(const std::vector<Task>& all) {
    for (const Task& task : all) AddressOf(task);
    RunningTask chief(Options(all[0], all, 1));
    {
      std::list<RunningTask> late;
      for (size_t i = 1; i < all.size(); ++i) late.emplace_back(Options(all[i], all, 0));
      for (RunningTask& task : late) {
        ASSERT_TRUE(task.AwaitEnd()) << task.Progress().task << " did not find its run over";
        EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
        EXPECT_EQ(task.Progress().step, 0);
      }
    }
    EXPECT_EQ(chief.Progress().step, 0) << "the chief cannot train alone";
    std::list<RunningTask> others;
    for (size_t i = 1; i < all.size(); ++i) others.emplace_back(Options(all[i], all, 1));
    EXPECT_EQ(chief.End(), OkStatus());
    for (RunningTask& task : others) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
    EXPECT_EQ(ReadRunEnd(folder_ + "/1", {"uid", 0, {}, 1})->value().step,
              chief.Progress().run_end->step);
    EXPECT_FALSE(ReadRunEnd(folder_ + "/1", {"uid", 0})->has_value()) << "the mark of run 1";
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/run_order_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(RunOrderTest, TasksWithServersThatAreStartedAgainFindTheirFirstRunOver) {
  StartAgainDuringTheSecondRun({{"chief", 0}, {"worker", 0}, {"ps", 0}});
}

TEST_F(RunOrderTest, TasksOfAGroupThatAreStartedAgainFindTheirFirstRunOver) {
  StartAgainDuringTheSecondRun({{"chief", 0}, {"worker", 0}});
}

}  // namespace
}  // namespace tfjob::train
