// Kills and stops tasks of a group at random times, drawn from a seed, and restarts killed tasks,
// as a platform does. Every run must take each of its steps exactly once. Its last checkpoint must
// be that of an uninterrupted run: byte for byte if the group waits for lost tasks (even seeds),
// and up to rounding if the group continues without them (odd seeds).
//
// TFJOB_SEED=n runs only the seed n. TFJOB_SEEDS=n runs the seeds below n.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <thread>

#include "runtime/base/env.h"
#include "tests/processes/fault_plan.h"
#include "tests/processes/group_job.h"

namespace tfjob::processes {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

const std::vector<cluster::Task> kGroup = {{"chief", 0}, {"worker", 0}, {"worker", 1}};

uint64_t NumberOf(const char* variable, uint64_t without) {
  const std::string text = GetEnv(variable).value_or("");
  return text.empty() ? without : std::stoull(text);
}

GroupSettings SettingsOf(uint64_t seed) {
  std::string strategy = "multi_worker_mirrored, transport: ";
  strategy += seed % 4 < 2 ? "tcp" : "auto";
  if (seed % 2 == 1) strategy += ", on_failure: shrink";
  return {.strategy = strategy};
}

// A job that is disturbed until all planned faults have happened or the job has ended.
class DisturbedJob {
 public:
  DisturbedJob(uint64_t seed, std::vector<Fault> faults)
      : settings_(SettingsOf(seed)),
        job_(StrCat("faults_", seed), kGroup),
        faults_(std::move(faults)) {
    job_.StartAll(settings_);
    start_ = last_fault_ = std::chrono::steady_clock::now();
  }
  ~DisturbedJob() {
    for (const auto& [task, until] : stopped_) job_.of(task).Signal(SIGCONT);
  }

  // Runs the job to completion. Returns false if a task does not exit in time.
  bool ToTheEnd(Duration timeout) {
    while (!AllEnded()) {
      if (std::chrono::steady_clock::now() > start_ + timeout) return false;
      Observe();
      LetGoOn();
      if (next_ < faults_.size() && Due(faults_[next_])) Disturb(faults_[next_]);
      std::this_thread::sleep_for(20ms);
    }
    return true;
  }
  GroupJob& job() { return job_; }
  size_t faults() const { return next_; }  // number of faults that happened before the end
  const std::string& story() const { return story_; }

 private:
  bool AllEnded() {
    return std::ranges::all_of(kGroup, [&](const auto& task) { return job_.of(task).Ended(); });
  }
  void Observe() {
    for (const cluster::Task& task : kGroup) step_ = std::max(step_, job_.LastLogged(task));
  }
  bool Due(const Fault& fault) const {
    return static_cast<double>(step_) >= fault.part * settings_.max_steps &&
           std::chrono::steady_clock::now() >= last_fault_ + fault.delay;
  }
  // Injects the fault. Does nothing if the task has exited.
  void Disturb(const Fault& fault) {
    if (job_.of(fault.victim).Ended()) return;
    ++next_;
    last_fault_ = std::chrono::steady_clock::now();
    stopped_.erase(fault.victim);
    if (!fault.kill()) {
      job_.of(fault.victim).Signal(SIGSTOP);
      stopped_[fault.victim] = last_fault_ + fault.stop;
      return;
    }
    job_.of(fault.victim).Signal(SIGKILL);
    if (job_.of(fault.victim).AwaitEnd(20s) != 128 + SIGKILL) return;  // it had just exited
    story_ += StrCat("---- before its end, ", cluster::ToString(fault.victim), "\n",
                     job_.of(fault.victim).Output());
    job_.Start(fault.victim, settings_);
  }
  void LetGoOn() {
    std::erase_if(stopped_, [&](const auto& one) {
      const bool due = std::chrono::steady_clock::now() >= one.second;
      if (due) job_.of(one.first).Signal(SIGCONT);
      return due;
    });
  }

  const GroupSettings settings_;
  GroupJob job_;
  const std::vector<Fault> faults_;
  size_t next_ = 0;  // index of the next fault in faults_
  SteadyTime start_, last_fault_;
  std::map<cluster::Task, SteadyTime> stopped_;  // when to continue each task
  int64_t step_ = 0;                             // the latest step that any task has logged
  std::string story_;                            // the output of killed processes
};

class GroupFaultsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    GroupJob job("faults_none", kGroup);
    job.StartAll();
    job.AwaitEnd();
    expected_ = new std::map<std::string, std::string>(job.Files());
    ASSERT_EQ(expected_->size(), 2u) << job.Outputs();
  }

  static void Run(uint64_t seed) {
    const std::vector<Fault> faults = DrawFaults(seed, kGroup);
    SCOPED_TRACE(StrCat("TFJOB_SEED=", seed, ": ", ToString(faults)));
    DisturbedJob disturbed(seed, faults);
    GroupJob& job = disturbed.job();
    ASSERT_TRUE(disturbed.ToTheEnd(180s)) << disturbed.story() << job.Outputs();
    for (const cluster::Task& task : kGroup) {
      EXPECT_EQ(job.of(task).AwaitEnd(0s), 0) << cluster::ToString(task) << "\n"
                                              << disturbed.story() << job.Outputs();
    }
    EXPECT_EQ(job.LastCheckpoint(), GroupSettings().max_steps);
    if (seed % 2 == 0) {
      EXPECT_TRUE(job.Files() == *expected_) << "the checkpoints differ\n"
                                             << disturbed.story() << job.Outputs();
    } else {
      ExpectSimilarWeights(job.Weights(), disturbed.story() + job.Outputs());
    }
    faults_ += disturbed.faults();
    std::cout << "seed " << seed << ", " << SettingsOf(seed).strategy << ": " << disturbed.faults()
              << " of: " << ToString(faults) << std::endl;
  }

  static size_t faults_;

 private:
  static void ExpectSimilarWeights(const std::vector<float>& weights, const std::string& story) {
    const std::vector<float> expected = GroupJob::Weights(GroupJob::FolderOf("faults_none"));
    ASSERT_EQ(weights.size(), expected.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_NEAR(weights[i], expected[i], 1e-3) << i << "\n" << story;
    }
  }

  static std::map<std::string, std::string>* expected_;
};
size_t GroupFaultsTest::faults_ = 0;
std::map<std::string, std::string>* GroupFaultsTest::expected_ = nullptr;

TEST_F(GroupFaultsTest, NoStepIsLostOrRepeated) {
  const uint64_t one = NumberOf("TFJOB_SEED", UINT64_MAX);
  const uint64_t seeds = NumberOf("TFJOB_SEEDS", 4);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    if (one == UINT64_MAX || seed == one) Run(seed);
  }
  if (one != UINT64_MAX && one >= seeds) Run(one);
  EXPECT_GT(faults_, 0u) << "no job was disturbed";
}

}  // namespace
}  // namespace tfjob::processes
