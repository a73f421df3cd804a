// Kills each kind of task in the middle of the Fashion-MNIST example, asynchronous and synchronous: the job must end
// Succeeded with its accuracy, and the step must never go back beyond the last checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "absl/strings/str_replace.h"
#include "runtime/base/file.h"
#include "runtime/io/checkpoint_directory.h"
#include "tests/processes/job_run.h"

namespace tfjob::processes {
namespace {

struct Case {
  const char* name;
  const char* example;
  cluster::Task victim;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class KillTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::string manifest = *ReadFile(Runfile(StrCat("deploy/examples/", GetParam().example)));
    // Its own folder, and checkpoints often enough to have one in the middle.
    const std::string example = GetParam().example;
    const std::string name = example.substr(0, example.find('.'));
    manifest = absl::StrReplaceAll(manifest, {{StrCat("/var/tmp/tfjob/", name), model_dir_}});
    const size_t steps = manifest.find("save_checkpoints_steps: ");
    ASSERT_NE(steps, std::string::npos);
    manifest.replace(steps, manifest.find('\n', steps) - steps, "save_checkpoints_steps: 300");
    job_ = JobRun::Start(manifest, folder_ + "/run");
  }

  int64_t LastCheckpoint() const {
    StatusOr<std::optional<io::Checkpoint>> latest = io::LatestCheckpoint(model_dir_);
    return latest.ok() && *latest ? (*latest)->step : -1;
  }

  // Waits for a checkpoint after training has begun, so that a loss is not simply a new start.
  void AwaitCheckpoint() {
    const auto deadline = std::chrono::steady_clock::now() + 120s;
    while (LastCheckpoint() <= 0 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(20ms);
    ASSERT_GT(LastCheckpoint(), 0) << job_->Output();
  }

  const std::string folder_ = testing::TempDir() + "/kill_test_" + GetParam().name;
  const std::string model_dir_ = folder_ + "/model";
  std::unique_ptr<JobRun> job_;
};

TEST_P(KillTest, JobSucceedsAndStepsDoNotGoBackBeyondTheLastCheckpoint) {
  AwaitCheckpoint();
  // ps 0 owns the step. What it shows may lie a moment behind what is saved.
  const int64_t before = job_->StepOf({"ps", 0});
  const int64_t floor = std::min(LastCheckpoint(), before);
  const pid_t killed = job_->Kill(GetParam().victim);
  ASSERT_NE(killed, 0) << job_->Output();
  ASSERT_NE(job_->Await(GetParam().victim, 60s, killed).pid, 0) << "it was not started again\n"
                                                                << job_->Output();

  int samples = 0;
  while (!job_->Ended()) {
    const int64_t step = job_->StepOf({"ps", 0});
    if (step > 0) {  // 0: it has just come back and holds nothing yet
      EXPECT_GE(step, floor) << job_->Output();
      ++samples;
    }
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_GT(samples, 0);
  EXPECT_EQ(job_->AwaitEnd(1s), 0) << job_->Output();
  EXPECT_GE(LastAccuracy(job_->Output()), 0.87) << job_->Output();
}

INSTANTIATE_TEST_SUITE_P(
    , KillTest,
    testing::Values(Case{"AsynchronousWorker", "fashion-mnist.yaml", {"worker", 1}},
                    Case{"AsynchronousParameterServer0", "fashion-mnist.yaml", {"ps", 0}},
                    Case{"AsynchronousParameterServer1", "fashion-mnist.yaml", {"ps", 1}},
                    Case{"AsynchronousChief", "fashion-mnist.yaml", {"chief", 0}},
                    Case{"SynchronousWorker", "fashion-mnist-sync.yaml", {"worker", 1}},
                    Case{"SynchronousParameterServer0", "fashion-mnist-sync.yaml", {"ps", 0}},
                    Case{"SynchronousParameterServer1", "fashion-mnist-sync.yaml", {"ps", 1}},
                    Case{"SynchronousChief", "fashion-mnist-sync.yaml", {"chief", 0}}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace tfjob::processes
