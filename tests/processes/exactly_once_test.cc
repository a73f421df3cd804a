// Kills tasks of jobs at random times, drawn from a seed, and restarts them, as a platform does;
// changes the number of tasks in elastic jobs. The weights of the model record which examples the
// committed steps have used (runtime/train/test_ledger.h). Every example must be used exactly once
// per epoch, with every way to share the examples (data.shard). Two exceptions are counted: batches
// in flight when a task of an asynchronous job is killed, and gradients that the log lists as
// dropped, with backup workers.
//
// TFJOB_SEED=n runs only the seed n. TFJOB_SEEDS=n runs the seeds below n of every kind of job.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/cluster/cluster.h"
#include "runtime/train/test_ledger.h"
#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

using cluster::Task;
using train::kLedgerExamples;

const Task kChief{"chief", 0}, kWorker0{"worker", 0}, kWorker1{"worker", 1};
constexpr int kBatch = 5;         // per task, with servers
constexpr int kGlobalBatch = 12;  // of a group

uint64_t NumberOf(const char* variable, uint64_t without) {
  const std::string text = GetEnv(variable).value_or("");
  return text.empty() ? without : std::stoull(text);
}

// Runs the tasks of a job as processes.
class LedgerJob {
 public:
  LedgerJob(const std::string& name, std::vector<Task> tasks, int examples, const std::string& data,
            const std::string& keys)
      : folder_(StrCat(testing::TempDir(), "/exactly_once_", name)), tasks_(std::move(tasks)) {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    train::WriteLedgerData(folder_);
    for (const Task& task : tasks_) addresses_[task] = wire::TestAddress();
    EXPECT_TRUE(
        WriteFileAtomically(folder_ + "/training.yaml",
                            train::LedgerTrainingFile(folder_, examples, data,
                                                      StrCat("log_step_count_steps: 20\n", keys)))
            .ok());
  }

  const std::vector<Task>& tasks() const { return tasks_; }
  // Starts a task, or a replacement for a task, whose output is appended to the story.
  void Start(const Task& task) {
    if (programs_.contains(task))
      story_ += StrCat("---- before its end, ", cluster::ToString(task), "\n", of(task).Output());
    cluster::TfConfig config{.task = task};
    for (const Task& listed : tasks_) {
      std::vector<cluster::Job>& jobs = config.cluster.jobs;
      if (jobs.empty() || jobs.back().name != listed.type) jobs.push_back({.name = listed.type});
      jobs.back().addresses[listed.index] = addresses_.at(listed);
    }
    programs_[task] =
        std::make_unique<Program>(Runfile("runtime/cmd/tfjob-trainer"),
                                  std::vector{StrCat("--config=", folder_, "/training.yaml")},
                                  std::map<std::string, std::string>{
                                      {"TF_CONFIG", cluster::Print(config)}, {"TFJOB_UID", "uid"}},
                                  StrCat(folder_, "/", task.type, task.index, ".log"));
  }
  void StartAll() {
    for (const Task& task : tasks_) Start(task);
  }
  Program& of(const Task& task) { return *programs_.at(task); }
  // Kills a task. Returns false if it had already ended.
  bool Kill(const Task& task) {
    if (of(task).Ended()) return false;
    of(task).Signal(SIGKILL);
    return of(task).AwaitEnd(20s) == 128 + SIGKILL;
  }
  // Returns the last step that a task has logged.
  int64_t StepOf(const Task& task) {
    const std::string output = of(task).Output(), key = " step step=";
    const size_t at = output.rfind(key);
    return at == std::string::npos ? 0 : std::stoll(output.substr(at + key.size()));
  }
  int64_t Step() {
    int64_t step = 0;
    for (const auto& [task, program] : programs_) step = std::max(step, StepOf(task));
    return step;
  }
  // Waits until a task has logged this step. Returns false if the chief ends, or after a minute.
  bool AwaitStep(int64_t step) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (Step() < step) {
      if (of(kChief).Ended() || std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }
  void ExpectSuccess(const std::vector<Task>& tasks) {
    for (const Task& task : tasks)
      EXPECT_EQ(of(task).AwaitEnd(120s), 0) << cluster::ToString(task) << "\n" << Story();
  }
  std::vector<int> Counts() const { return train::LedgerCounts(train::LedgerCheckpoint(folder_)); }
  std::string Story() const {
    std::string all = story_;
    for (const auto& [task, program] : programs_)
      all += StrCat("---- ", cluster::ToString(task), "\n", program->Output());
    return all;
  }

 private:
  const std::string folder_;
  const std::vector<Task> tasks_;
  std::map<Task, std::string> addresses_;
  std::map<Task, std::unique_ptr<Program>> programs_;
  std::string story_;  // the output of processes that have been replaced
};

std::string ShardOf(uint64_t seed) {
  constexpr const char* kShards[] = {"file", "data", "auto"};
  return kShards[seed % std::size(kShards)];
}

// Returns how often each example of the share of a task, one of two tasks, was used.
std::vector<int> ShareOf(const std::vector<int>& counts, int rank, const std::string& shard) {
  const std::vector<int> groups = train::LedgerGroups();
  std::vector<int> share;
  for (size_t i = 0; i < counts.size(); ++i) {
    if ((shard == "file" ? groups[i] : static_cast<int>(i % 2)) == rank) share.push_back(counts[i]);
  }
  return share;
}

// Kills tasks of the job at random steps until `kills` have been killed or the job has ended.
// Returns how often each task was killed.
std::map<Task, int> Disturb(LedgerJob& job, const std::vector<Task>& victims, int kills,
                            int64_t every, std::mt19937_64& random) {
  std::map<Task, int> killed;
  int64_t due = 0;
  for (int i = 0; i < kills; ++i) {
    due = std::max(due, job.Step()) + every / 2 + static_cast<int64_t>(random() % every);
    if (!job.AwaitStep(due)) break;
    const Task& victim = victims[random() % victims.size()];
    if (!job.Kill(victim)) continue;
    ++killed[victim];
    job.Start(victim);
  }
  return killed;
}

std::string Text(const std::map<Task, int>& killed) {
  std::string text;
  for (const auto& [task, times] : killed)
    text += StrCat(text.empty() ? "" : ", ", cluster::ToString(task), " ", times, "×");
  return text.empty() ? "no task" : text;
}

class ExactlyOnce : public testing::Test {
 protected:
  template <typename Run>
  static void RunSeeds(const char* kind, const Run& run) {
    const uint64_t one = NumberOf("TFJOB_SEED", UINT64_MAX), seeds = NumberOf("TFJOB_SEEDS", 1);
    size_t faults = 0;
    for (uint64_t seed = one == UINT64_MAX ? 0 : one; seed < std::max(seeds, one + 1); ++seed) {
      SCOPED_TRACE(StrCat("TFJOB_SEED=", seed));
      const std::map<Task, int> killed = run(seed);
      std::cout << kind << ", seed " << seed << ", shard " << ShardOf(seed) << ": killed "
                << Text(killed) << std::endl;
      for (const auto& [task, times] : killed) faults += static_cast<size_t>(times);
      if (seed == one || HasFatalFailure()) break;
    }
    EXPECT_GT(faults, 0u) << "no job was disturbed";
  }
};

TEST_F(ExactlyOnce, AGroupThatWaitsForLostTasks) {
  RunSeeds("group", [](uint64_t seed) {
    constexpr int kSteps = 5000;
    std::mt19937_64 random(seed);
    LedgerJob job(StrCat("group_", seed), {kChief, kWorker0, kWorker1}, kGlobalBatch,
                  StrCat("shard: ", ShardOf(seed)),
                  StrCat("global_batch_size: 12\nsave_checkpoints_steps: 1000000\nmax_steps: ",
                         kSteps, "\nstrategy: {name: multi_worker_mirrored}\n"));
    job.StartAll();
    const auto killed = Disturb(job, job.tasks(), 3, kSteps / 5, random);
    job.ExpectSuccess(job.tasks());
    EXPECT_EQ(job.Counts(),
              std::vector<int>(kLedgerExamples, kSteps * kGlobalBatch / kLedgerExamples))
        << job.Story();
    return killed;
  });
}

TEST_F(ExactlyOnce, AGroupWhoseTasksJoinAndLeave) {
  RunSeeds("elastic group", [](uint64_t seed) {
    constexpr int kSteps = 10000;
    std::mt19937_64 random(seed);
    LedgerJob job(StrCat("elastic_", seed), {kChief, kWorker0, kWorker1}, kGlobalBatch,
                  StrCat("shard: ", ShardOf(seed)),
                  StrCat("global_batch_size: 12\nsave_checkpoints_steps: 1000000\nmax_steps: ",
                         kSteps, "\nstrategy: {name: multi_worker_mirrored, min_replicas: 1, ",
                         "max_replicas: 3, on_failure: shrink}\n"));
    job.Start(kChief);
    job.Start(kWorker0);
    Task absent = kWorker1;  // joins; then one of the workers is killed
    std::map<Task, int> killed;
    int64_t due = 0;
    for (int i = 0; i < 3; ++i) {
      const auto await = [&] {
        due = std::max(due, job.Step()) + 500 + static_cast<int64_t>(random() % 1000);
        return job.AwaitStep(due);
      };
      if (!await()) break;
      job.Start(absent);
      if (!await()) break;
      absent = random() % 2 == 0 ? kWorker0 : kWorker1;
      if (!job.Kill(absent)) break;
      ++killed[absent];
    }
    job.ExpectSuccess({kChief});
    EXPECT_EQ(job.Counts(),
              std::vector<int>(kLedgerExamples, kSteps * kGlobalBatch / kLedgerExamples))
        << job.Story();
    return killed;
  });
}

const std::vector<Task> kWithServers = {kChief, kWorker0, {"ps", 0}, {"ps", 1}};

std::string ServerKeys(int steps, const std::string& strategy) {
  return StrCat("batch_size: ", kBatch, "\nsave_checkpoints_steps: 100\nmax_steps: ", steps,
                "\nstrategy: {", strategy, "}\n");
}

// A lost task has drawn fewer batches than the others, so each task's share is checked separately.
TEST_F(ExactlyOnce, ASynchronousJobWithServers) {
  RunSeeds("synchronous", [](uint64_t seed) {
    constexpr int kSteps = 2000;
    std::mt19937_64 random(seed);
    LedgerJob job(StrCat("synchronous_", seed), kWithServers, 2 * kBatch,
                  StrCat("shard: ", ShardOf(seed), "\n  shuffle: false"),
                  ServerKeys(kSteps, "mode: sync, step_lease_secs: 2"));
    job.StartAll();
    const auto killed = Disturb(job, job.tasks(), 3, kSteps / 5, random);
    job.ExpectSuccess({kChief, kWorker0});
    const std::vector<int> counts = job.Counts();
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), kSteps * 2 * kBatch);
    for (const int rank : {0, 1}) {
      const auto [least, most] = std::ranges::minmax(ShareOf(counts, rank, ShardOf(seed)));
      EXPECT_LE(most - least, 1) << "rank " << rank << "\n" << job.Story();
    }
    return killed;
  });
}

TEST_F(ExactlyOnce, AnAsynchronousJobExceptForBatchesInFlight) {
  RunSeeds("asynchronous", [](uint64_t seed) {
    constexpr int kSteps = 4000;
    std::mt19937_64 random(seed);
    LedgerJob job(StrCat("asynchronous_", seed), kWithServers, kBatch,
                  StrCat("shard: ", ShardOf(seed), "\n  shuffle: false"),
                  ServerKeys(kSteps, "mode: async"));
    job.StartAll();
    const auto killed = Disturb(job, {kChief, kWorker0}, 3, kSteps / 5, random);
    job.ExpectSuccess({kChief, kWorker0});
    const std::vector<int> counts = job.Counts();
    for (const int rank : {0, 1}) {
      const std::vector<int> share = ShareOf(counts, rank, ShardOf(seed));
      const int most = std::ranges::max(share);
      int missing = 0;
      for (const int uses : share) missing += std::max(0, most - 1 - uses);
      const Task& task = rank == 0 ? kChief : kWorker0;
      const int times = killed.contains(task) ? killed.at(task) : 0;
      EXPECT_LE(missing, times * kBatch) << "rank " << rank << "\n" << job.Story();
    }
    return killed;
  });
}

// Returns the sum of all "dropped=N" in the output of a task, which is not restarted.
int64_t Dropped(const std::string& output) {
  int64_t dropped = 0;
  const std::string key = " dropped=";
  for (size_t at = output.find(key); at != std::string::npos; at = output.find(key, at + 1))
    dropped += std::stoll(output.substr(at + key.size()));
  return dropped;
}

// With a backup worker, each step uses the gradients of one of two tasks. The other gradient is
// dropped if it comes too late, and is listed as dropped. No server is lost here.
TEST(ExactlyOnceWithBackups, DroppedGradientsAreListed) {
  constexpr int kSteps = 3000;
  for (const std::string shard : {"data", "file"}) {
    LedgerJob job("backup_" + shard, kWithServers, kBatch,
                  StrCat("shard: ", shard, "\n  shuffle: false"),
                  ServerKeys(kSteps, "mode: sync, replicas_to_aggregate: 1"));
    job.StartAll();
    job.ExpectSuccess({kChief, kWorker0});
    const std::vector<int> counts = job.Counts();
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), kSteps * kBatch);
    int64_t all_dropped = 0;
    for (const int rank : {0, 1}) {
      const std::vector<int> share = ShareOf(counts, rank, shard);
      const int64_t used = std::accumulate(share.begin(), share.end(), 0) / kBatch;
      const int64_t dropped = Dropped(job.of(rank == 0 ? kChief : kWorker0).Output());
      // The task has drawn this many batches, all of which are either used or listed, except for
      // those after the last line of the log.
      constexpr int64_t kUnlisted = 25;
      const int64_t drawn = used + dropped + kUnlisted;
      const auto per_epoch = static_cast<int64_t>(share.size()) / kBatch;
      for (size_t i = 0; i < share.size(); ++i)
        EXPECT_LE(share[i], (drawn + per_epoch - 1) / per_epoch) << "example " << i;
      const int64_t least = std::ranges::min(share);
      EXPECT_GE(least, used / per_epoch - dropped - kUnlisted);
      all_dropped += dropped;
    }
    std::cout << "backup, shard " << shard << ": " << all_dropped << " dropped" << std::endl;
    EXPECT_GT(all_dropped, 0) << job.Story();
  }
}

}  // namespace
}  // namespace tfjob::processes
