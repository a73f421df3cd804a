// Kills each kind of task in the middle of the Fashion-MNIST example, in asynchronous and in
// synchronous mode. The job must end as Succeeded with the expected accuracy. The step may decrease
// only if a server that stores it (ps 0 or, in synchronous mode, any server) was lost, and then
// only to that of the last checkpoint. Other tests pause a task for a while: the task is then
// silent, but its connections stay open.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

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

class FaultTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::string manifest = *ReadFile(Runfile(StrCat("deploy/examples/", GetParam().example)));
    // Use a separate folder, and save checkpoints often enough to have one in the middle of the
    // run.
    const std::string example = GetParam().example;
    const std::string name = example.substr(0, example.find('.'));
    manifest = WithModelFolder(manifest, name, model_dir_);
    for (const auto& [key, value] : settings_) {
      const size_t at = manifest.find(key + ": ");
      ASSERT_NE(at, std::string::npos) << key;
      manifest.replace(at, manifest.find_first_of(",\n}", at) - at, StrCat(key, ": ", value));
    }
    job_ = JobRun::Start(manifest, folder_ + "/run");
  }

  int64_t LastCheckpoint() const {
    StatusOr<std::optional<io::Checkpoint>> latest = io::LatestCheckpoint(model_dir_);
    return latest.ok() && *latest ? (*latest)->step : -1;
  }

  // Polls until the condition holds. Returns false if the job ends or the time expires first.
  template <typename Condition>
  bool Await(Duration timeout, const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!job_->Ended() && std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }

  // The keys of the training file that differ from the example, and their values.
  std::map<std::string, int> settings_ = {{"save_checkpoints_steps", 300}};
  const std::string folder_ = testing::TempDir() + "/kill_test_" + GetParam().name;
  const std::string model_dir_ = folder_ + "/model";
  std::unique_ptr<JobRun> job_;
};

class KillTest : public FaultTest {
 protected:
  // Trains a smaller model than the example. The number of steps is large enough to reach the
  // expected accuracy, and to kill a task in the middle.
  KillTest() {
    const bool synchronous = GetParam().example == std::string("fashion-mnist-sync.yaml");
    settings_ = {{"units", 128}, {"save_checkpoints_steps", 200}};
    if (synchronous) {
      settings_["epochs"] = 13;
    } else {
      settings_.insert({{"epochs", 20}, {"decay_steps", 6000}});
    }
  }

  // Waits until half of the steps are complete, and then for another checkpoint.
  void AwaitCheckpointInTheMiddle() {
    ASSERT_TRUE(job_->AwaitPart(0.5, 240s)) << job_->Output();
    const int64_t before = LastCheckpoint();
    ASSERT_TRUE(Await(60s, [&] { return LastCheckpoint() > before; })) << job_->Output();
  }
};

TEST_P(KillTest, JobSucceedsAndStepsGoBackOnlyWhenAServerIsLost) {
  ASSERT_NO_FATAL_FAILURE(AwaitCheckpointInTheMiddle());
  // ps 0 counts the steps. The step that it reports may be slightly behind that of the
  // last checkpoint.
  int64_t before = 0;
  ASSERT_TRUE(Await(10s, [&] { return (before = job_->StepOf({"ps", 0})) > 0; })) << job_->Output();
  const bool synchronous = GetParam().example == std::string("fashion-mnist-sync.yaml");
  const bool step_lost =
      GetParam().victim.type == "ps" && (synchronous || GetParam().victim.index == 0);
  int64_t floor = step_lost ? std::min(LastCheckpoint(), before) : before;
  const pid_t killed = job_->SignalTask(GetParam().victim, SIGKILL);
  ASSERT_NE(killed, 0) << job_->Output();
  ASSERT_NE(job_->Await(GetParam().victim, 60s, killed).pid, 0) << "it was not started again\n"
                                                                << job_->Output();

  int samples = 0;
  while (!job_->Ended()) {
    const int64_t step = job_->StepOf({"ps", 0});
    if (step > 0) {  // 0 if ps 0 was restarted and is still empty
      EXPECT_GE(step, floor) << job_->Output();
      if (!step_lost) floor = step;
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

// The tasks that are not killed keep the state, so no step may be lost when any single task is
// killed.
class GroupKillTest : public FaultTest {
 protected:
  GroupKillTest() { settings_ = {{"units", 128}, {"save_checkpoints_steps", 1000000}}; }
};

TEST_P(GroupKillTest, JobSucceedsAndNoStepIsLost) {
  const cluster::Task victim = GetParam().victim;
  const cluster::Task witness{"worker", 0};
  ASSERT_TRUE(job_->AwaitPart(0.4, 240s)) << job_->Output();
  int64_t floor = 0;
  ASSERT_TRUE(Await(10s, [&] { return (floor = job_->StepOf(witness)) > 0; })) << job_->Output();
  const int64_t at_kill = floor;
  const pid_t killed = job_->SignalTask(victim, SIGKILL);
  ASSERT_NE(killed, 0) << job_->Output();
  ASSERT_NE(job_->Await(victim, 60s, killed).pid, 0) << "it was not started again\n"
                                                     << job_->Output();
  bool took_part = false;
  while (!job_->Ended()) {
    const int64_t step = job_->StepOf(witness), of_victim = job_->StepOf(victim);
    if (step > 0) {
      EXPECT_GE(step, floor) << job_->Output();
      floor = std::max(floor, step);
    }
    took_part = took_part || of_victim > 0;
    // The replacement must get its state from the other tasks, because the only checkpoint is that
    // of step 0.
    EXPECT_TRUE(of_victim <= 0 || of_victim >= at_kill) << of_victim << "\n" << job_->Output();
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_TRUE(took_part) << job_->Output();
  EXPECT_EQ(job_->AwaitEnd(1s), 0) << job_->Output();
  EXPECT_GE(LastAccuracy(job_->Output()), 0.87) << job_->Output();
}

INSTANTIATE_TEST_SUITE_P(, GroupKillTest,
                         testing::Values(Case{"Worker", "multi-worker.yaml", {"worker", 1}},
                                         Case{"Chief", "multi-worker.yaml", {"chief", 0}}),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

class SilenceTest : public FaultTest {
 protected:
  // Trains long enough for a task to become silent in the middle.
  SilenceTest() { settings_ = {{"save_checkpoints_steps", 300}, {"epochs", 8}}; }

  // Returns whether a line of the task's log contains both `peer` and `what`.
  bool Logged(const cluster::Task& task, const std::string& peer, const std::string& what) const {
    std::istringstream log(ReadFile(StrCat(folder_, "/run/state/logs/fashion-mnist-", task.type,
                                           "-", task.index, "/tensorflow.log"))
                               .value_or(""));
    for (std::string line; std::getline(log, line);) {
      if (line.find(peer) != std::string::npos && line.find(what) != std::string::npos) return true;
    }
    return false;
  }
  bool AwaitStepOf(const cluster::Task& task, int64_t step) {
    return Await(60s, [&] { return job_->StepOf(task) >= step; });
  }
};

TEST_P(SilenceTest, AStoppedTaskIsNamedAndTakesPartAgainWhenItGoesOn) {
  const cluster::Task victim = GetParam().victim;
  // The task that logs the silence: ps 0 for a stopped worker, the chief for a stopped server.
  const bool serves = victim.type == "ps";
  const cluster::Task observer = serves ? cluster::Task{"chief", 0} : cluster::Task{"ps", 0};
  ASSERT_TRUE(job_->AwaitPart(0.05, 120s)) << job_->Output();
  const pid_t stopped = job_->SignalTask(victim, SIGSTOP);
  ASSERT_NE(stopped, 0) << job_->Output();
  EXPECT_TRUE(Await(20s, [&] {
    return Logged(observer, StrCat(victim.type, " ", victim.index, " ("), "has been silent for");
  })) << job_->Output();
  const int64_t step = job_->StepOf({"ps", 0});
  if (!serves) {
    EXPECT_TRUE(AwaitStepOf({"ps", 0}, step + 200)) << "nobody went on\n" << job_->Output();
  }
  EXPECT_EQ(job_->SignalTask(victim, SIGCONT), stopped) << job_->Output();
  EXPECT_TRUE(AwaitStepOf(victim, step + 1)) << "it does not go on\n" << job_->Output();
  EXPECT_EQ(job_->AwaitEnd(240s), 0) << job_->Output();
}

INSTANTIATE_TEST_SUITE_P(, SilenceTest,
                         testing::Values(Case{"Worker", "fashion-mnist.yaml", {"worker", 1}},
                                         Case{"ParameterServer", "fashion-mnist.yaml", {"ps", 1}}),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace tfjob::processes
