// Kills and stops tasks of every role at random times, drawn from a seed, while the Fashion-MNIST
// examples train. The job must end as Succeeded, with an accuracy at most one percentage point
// below that of runs without faults. The step may decrease only if a parameter server is lost.
//
// TFJOB_SEED=n runs only the seed n. TFJOB_SEEDS=n runs the seeds below n in each mode, and
// TFJOB_UNDISTURBED=n first measures the accuracy of n undisturbed runs: bazel test
// --config=release … --test_env=TFJOB_SEED=17 --test_output=streamed
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "tests/processes/fault_plan.h"
#include "tests/processes/job_run.h"

namespace tfjob::processes {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int64_t kSteps = 1500;
const std::vector<cluster::Task> kTasks = {{"chief", 0}, {"worker", 0}, {"worker", 1},
                                           {"ps", 0},    {"ps", 1},     {"evaluator", 0}};

int Number(const char* variable, int without) {
  const std::string text = GetEnv(variable).value_or("");
  return text.empty() ? without : std::stoi(text);
}

// Settings that all jobs of a mode share.
struct Mode {
  const char* name;
  const char* example;
  // An accuracy that every run without faults reaches. If TFJOB_UNDISTURBED is set, the accuracy is
  // measured instead. So far, only four runs were measured: they reached 0.8475 and 0.8498
  // (asynchronous), and 0.8738 and 0.8681 (synchronous).
  double lowest_accuracy;
};
constexpr Mode kAsynchronous{"asynchronous", "fashion-mnist", 0.84};
constexpr Mode kSynchronous{"synchronous", "fashion-mnist-sync", 0.86};

// Returns an example's manifest with a smaller model, which trains for kSteps. In synchronous mode,
// the jobs of every second seed wait for all gradients; all other jobs have a backup worker.
std::string Manifest(const Mode& mode, uint64_t seed, const std::string& model_dir) {
  const std::string file = StrCat("deploy/examples/", mode.example, ".yaml");
  std::string text = WithModelFolder(*ReadFile(Runfile(file)), mode.example, model_dir);
  const bool asynchronous = &mode == &kAsynchronous;
  const std::string gradients = seed % 2 == 0 ? "0" : "2";
  const std::vector<std::pair<std::string, std::string>> changes = {
      {asynchronous ? "epochs: 25" : "epochs: 15",
       StrCat("max_steps: ", kSteps, "\n    seed: ", seed)},
      {asynchronous ? "units: 512" : "units: 256", "units: 128"},
      {"save_checkpoints_steps: 1000", "save_checkpoints_steps: 200"},
      {asynchronous ? "decay_steps: 7500" : "replicas_to_aggregate: 2",
       asynchronous ? StrCat("decay_steps: ", kSteps)
                    : StrCat("replicas_to_aggregate: ", gradients, ", step_lease_secs: 2")}};
  for (const auto& [from, to] : changes) {
    EXPECT_EQ(absl::StrReplaceAll({{from, to}}, &text), 1) << from;
  }
  return text;
}

// A job that is observed and disturbed until it ends.
class JobWithFaults {
 public:
  JobWithFaults(const Mode& mode, uint64_t seed, std::vector<Fault> faults)
      : folder_(StrCat(testing::TempDir(), "/random_faults_", mode.name, "_", seed)),
        faults_(std::move(faults)) {
    std::filesystem::remove_all(folder_);
    job_ = JobRun::Start(Manifest(mode, seed, folder_ + "/model"), folder_ + "/run");
    start_ = last_fault_ = std::chrono::steady_clock::now();
  }

  // Runs the job to completion. Returns false if the job does not end in time.
  bool ToTheEnd(Duration timeout) {
    while (!job_->Ended()) {
      if (std::chrono::steady_clock::now() > start_ + timeout) break;
      Observe();
      LetGoOn();
      if (next_ < faults_.size() && Due(faults_[next_])) Disturb(faults_[next_]);
      std::this_thread::sleep_for(20ms);
    }
    for (const auto& [pid, until] : stopped_) kill(pid, SIGCONT);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return job_->Ended();
  }

  int exit_status() { return job_->AwaitEnd(0s); }
  double accuracy() const { return LastAccuracy(job_->Output()); }
  double seconds() const { return seconds_; }
  size_t faults() const { return next_; }  // number of faults before the end
  int times_back() const { return times_back_; }
  int servers_lost() const { return servers_lost_; }

  // Returns the output, and the end of each task's log.
  std::string Story() const {
    std::string text = job_->Output();
    std::error_code error;
    for (const auto& log :
         std::filesystem::recursive_directory_iterator(folder_ + "/run/state/logs", error)) {
      if (!log.is_regular_file()) continue;
      const std::string all = ReadFile(log.path()).value_or("");
      text += StrCat("---- ", log.path().string(), "\n",
                     all.substr(all.size() - std::min<size_t>(all.size(), 6000)));
    }
    return text;
  }

 private:
  // Reads the step from ps 0, which counts the steps. ps 0 reports 0 if it has just started and is
  // still empty.
  void Observe() {
    const int64_t step = job_->StepOf({"ps", 0});
    if (step <= 0) return;
    if (step < step_) ++times_back_;
    step_ = step;
    farthest_ = std::max(farthest_, step);
  }
  bool Due(const Fault& fault) const {
    return static_cast<double>(farthest_) >= fault.part * static_cast<double>(kSteps) &&
           std::chrono::steady_clock::now() >= last_fault_ + fault.delay;
  }
  // Injects the fault. If the victim has no process because it is being restarted, does nothing; a
  // later call then injects the fault.
  void Disturb(const Fault& fault) {
    const pid_t pid = job_->SignalTask(fault.victim, fault.kill() ? SIGKILL : SIGSTOP);
    if (pid == 0) return;
    ++next_;
    last_fault_ = std::chrono::steady_clock::now();
    if (!fault.kill()) stopped_[pid] = last_fault_ + fault.stop;
    // A short stop is over before the lease expires, so the job loses no state.
    const bool lost = fault.kill() || fault.stop >= 10s;
    if (fault.victim.type == "ps" && lost) ++servers_lost_;
  }
  void LetGoOn() {
    for (auto one = stopped_.begin(); one != stopped_.end();) {
      const bool due = std::chrono::steady_clock::now() >= one->second;
      if (due) kill(one->first, SIGCONT);
      one = due ? stopped_.erase(one) : std::next(one);
    }
  }

  const std::string folder_;
  const std::vector<Fault> faults_;
  std::unique_ptr<JobRun> job_;
  SteadyTime start_, last_fault_;
  std::map<pid_t, SteadyTime> stopped_;  // when to continue each process
  size_t next_ = 0;                      // index of the next fault in faults_
  int64_t step_ = 0, farthest_ = 0;
  int times_back_ = 0, servers_lost_ = 0;
  double seconds_ = 0;
};

// Returns the lowest accuracy of runs without faults. If TFJOB_UNDISTURBED is set, measures this
// accuracy once per mode.
double LowestUndisturbed(const Mode& mode) {
  static std::map<std::string, double> measured;
  const int runs = Number("TFJOB_UNDISTURBED", 0);
  if (runs == 0) return mode.lowest_accuracy;
  const auto [entry, fresh] = measured.insert({mode.name, 1.0});
  for (int i = 0; fresh && i < runs; ++i) {
    JobWithFaults run(mode, static_cast<uint64_t>(i), {});
    EXPECT_TRUE(run.ToTheEnd(240s)) << run.Story();
    EXPECT_EQ(run.exit_status(), 0) << run.Story();
    EXPECT_EQ(run.times_back(), 0) << run.Story();
    entry->second = std::min(entry->second, run.accuracy());
    std::cout << absl::StrFormat("%s, undisturbed %d: accuracy %.4f, %.1f s\n", mode.name, i,
                                 run.accuracy(), run.seconds())
              << std::flush;
  }
  return entry->second;
}

class RandomFaultsTest : public testing::TestWithParam<int> {
 protected:
  static void Check(const Mode& mode, uint64_t seed) {
    const double least = LowestUndisturbed(mode) - 0.01;
    const std::vector<Fault> faults = DrawFaults(seed, kTasks);
    JobWithFaults run(mode, seed, faults);
    const bool ended = run.ToTheEnd(240s);
    std::cout << absl::StrFormat(
                     "%s, seed %d: accuracy %.4f, %.1f s, step back %d×, %d of %d: %s\n", mode.name,
                     seed, run.accuracy(), run.seconds(), run.times_back(), run.faults(),
                     faults.size(), ToString(faults))
              << std::flush;
    EXPECT_TRUE(ended) << run.Story();
    EXPECT_EQ(run.exit_status(), 0) << run.Story();
    EXPECT_GE(run.accuracy(), least) << run.Story();
    EXPECT_LE(run.times_back(), run.servers_lost()) << run.Story();
  }
};

TEST_P(RandomFaultsTest, AnAsynchronousJobSucceeds) {
  Check(kAsynchronous, static_cast<uint64_t>(GetParam()));
}

TEST_P(RandomFaultsTest, ASynchronousJobSucceeds) {
  Check(kSynchronous, static_cast<uint64_t>(GetParam()));
}

// Returns the seeds to run. The default seeds kill a task of every role, and stop one task for
// longer than the lease.
std::vector<int> Seeds() {
  if (const int one = Number("TFJOB_SEED", -1); one >= 0) return {one};
  const int count = Number("TFJOB_SEEDS", 0);
  if (count == 0) return {12, 34, 41};
  std::vector<int> seeds(static_cast<size_t>(count));
  std::iota(seeds.begin(), seeds.end(), 0);
  return seeds;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFaultsTest, testing::ValuesIn(Seeds()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace tfjob::processes
