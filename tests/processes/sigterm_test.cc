// Sends SIGTERM to individual tasks of a job that runs as processes. The step at which a task was
// asked to stop must be in a checkpoint, even though no checkpoint is due then. The job must
// continue from this step.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/cluster/cluster.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/progress/client.h"
#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

using cluster::Task;

class SigtermTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: adam, learning_rate: 0.001}
data:
  train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 64}
batch_size: 8
threads: 1
save_checkpoints_steps: 1000000000
log_step_count_steps: 0
max_steps: 1000000000
strategy: {name: parameter_server, mode: )",
                                    GetParam(), "}\nmodel_dir: ", folder_, "/model\n");
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/training.yaml", text).ok());
    for (const Task& task : kAll) addresses_[task] = wire::TestAddress();
    for (const Task& task : kAll) Start(task);
    ASSERT_TRUE(Eventually([&] { return StepOf(kChief) >= 20; })) << Outputs();
  }

  void TearDown() override {
    for (auto& [task, program] : programs_) {
      if (!program->Ended()) program->Signal(SIGTERM);
    }
  }

  void Start(const Task& task) {
    cluster::TfConfig config{.task = task};
    for (const Task& one : kAll) {
      if (config.cluster.jobs.empty() || config.cluster.jobs.back().name != one.type)
        config.cluster.jobs.push_back({.name = one.type});
      config.cluster.jobs.back().addresses[one.index] = addresses_[one];
    }
    const std::map<std::string, std::string> environment = {{"TF_CONFIG", cluster::Print(config)},
                                                            {"TFJOB_UID", "uid"},
                                                            {"TFJOB_GRACE_PERIOD_SECONDS", "90"}};
    programs_[task] = std::make_unique<Program>(
        Runfile("runtime/cmd/tfjob-trainer"),
        std::vector{StrCat("--config=", folder_, "/training.yaml")}, environment,
        StrCat(folder_, "/", task.type, task.index, "-", ++starts_, ".log"));
  }

  int64_t StepOf(const Task& task) {
    const auto progress = progress::ProgressClient(addresses_[task]).Fetch(1s);
    return progress.ok() ? progress->step : -1;
  }
  int64_t LastCheckpoint() const {
    auto latest = io::LatestCheckpoint(folder_ + "/model");
    return latest.ok() && *latest ? (*latest)->step : -1;
  }
  template <typename Condition>
  static bool Eventually(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(10ms);
    return condition();
  }
  std::string Outputs() const {
    std::string all;
    for (const auto& [task, program] : programs_)
      all += StrCat("---- ", cluster::ToString(task), "\n", program->Output());
    return all;
  }
  // Sends SIGTERM to the task and checks that its last step is saved before the grace period ends.
  void AskToEnd(const Task& task) {
    const int64_t asked = StepOf(kPs0);
    ASSERT_GE(asked, 20) << Outputs();
    ASSERT_LT(LastCheckpoint(), asked);
    programs_[task]->Signal(SIGTERM);
    EXPECT_EQ(programs_[task]->AwaitEnd(60s), 143) << Outputs();
    EXPECT_TRUE(Eventually([&] { return LastCheckpoint() >= asked; })) << Outputs();
  }

  const Task kChief{"chief", 0}, kPs0{"ps", 0}, kPs1{"ps", 1}, kWorker{"worker", 0};
  const std::vector<Task> kAll = {kChief, kPs0, kPs1, kWorker};
  const std::string folder_ = StrCat(testing::TempDir(), "/sigterm_test_", GetParam());
  std::map<Task, std::string> addresses_;
  std::map<Task, std::unique_ptr<Program>> programs_;
  int starts_ = 0;
};

TEST_P(SigtermTest, NoTaskTakesStepsWithIt) {
  for (const Task& task : {kWorker, kPs1, kPs0, kChief}) {
    ASSERT_NO_FATAL_FAILURE(AskToEnd(task));
    if (task == kChief) break;
    const int64_t saved = LastCheckpoint();
    Start(task);
    ASSERT_TRUE(Eventually([&] { return StepOf(kChief) > saved + 20; })) << Outputs();
  }
}

INSTANTIATE_TEST_SUITE_P(, SigtermTest, testing::Values("async", "sync"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace tfjob::processes
