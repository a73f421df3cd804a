// Tests which examples the committed steps of jobs have used: with each way to share the examples
// (data.shard), while tasks are restarted, and while their number changes in the middle of an
// epoch. The tasks are threads of one process, connected over loopback;
// tests/processes/exactly_once_test.cc kills processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <numeric>
#include <random>

#include "runtime/train/test_job.h"
#include "runtime/train/test_ledger.h"

namespace tfjob::train {
namespace {

class ExactlyOnce : public testing::TestWithParam<const char*>, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    ASSERT_NO_FATAL_FAILURE(WriteLedgerData(folder_));
  }
  std::string shard() const { return GetParam(); }
  config::TrainingConfig Config(int examples, const std::string& data,
                                const std::string& more) const {
    const auto config = config::ParseTrainingConfig(
        LedgerTrainingFile(folder_, examples, StrCat("shard: ", shard(), "\n  ", data),
                           StrCat("log_step_count_steps: 0\n", more)),
        "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config::Validate(*config), OkStatus());
    return *config;
  }
  std::vector<int> Counts() const { return LedgerCounts(LedgerCheckpoint(folder_)); }

  const std::string folder_ =
      StrCat(testing::TempDir(), "/exactly_once_test_", std::filesystem::path(GetParam()).string());
};

// The group starts with two tasks. A third one joins and leaves at random steps, as does the second
// one once. An epoch has five steps, so most changes happen in the middle of an epoch.
TEST_P(ExactlyOnce, WhenTasksJoinAndLeaveAGroup) {
  constexpr int kSteps = 20000;
  const config::TrainingConfig config =
      Config(12, "shuffle: true",
             StrCat("global_batch_size: 12\nsave_checkpoints_steps: 1000000\nmax_steps: ", kSteps,
                    "\nstrategy: {name: multi_worker_mirrored, min_replicas: 2, max_replicas: 3, ",
                    "on_failure: shrink}\n"));
  const std::vector<Task> tasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}};
  const auto start = [&](size_t index) {
    return std::make_unique<RunningTask>(config, Static(tasks[index], tasks));
  };
  const auto await_others = [](RunningTask& task, size_t others) {
    return task.Await([&](const progress::Progress& p) { return p.peers.size() == others; });
  };
  std::mt19937 random(11);
  const auto further = [&](RunningTask& task) {
    return task.AwaitStep(task.Progress().step + 50 + static_cast<int64_t>(random() % 100));
  };
  auto chief = start(0), first = start(1), second = start(2);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(await_others(*chief, 2)) << round;
    ASSERT_TRUE(further(*chief));
    std::unique_ptr<RunningTask>& leaves = round == 1 ? first : second;
    EXPECT_EQ(leaves->Stop().code(), StatusCode::kCancelled);
    ASSERT_TRUE(await_others(*chief, 1)) << round;
    ASSERT_TRUE(further(*chief));
    leaves = start(round == 1 ? 1 : 2);
  }
  ASSERT_TRUE(await_others(*chief, 2));
  EXPECT_LT(chief->Progress().step, kSteps) << "the changes have taken too long";
  for (const auto& task : {&chief, &first, &second}) {
    ASSERT_TRUE((*task)->AwaitEnd());
    EXPECT_EQ((*task)->End(), OkStatus());
  }
  EXPECT_EQ(Counts(), std::vector<int>(kLedgerExamples, kSteps * 12 / kLedgerExamples));
}

// Two tasks with two servers. Lost tasks have drawn fewer batches than the others, so the examples
// of each task's share are counted separately.
class ExactlyOnceWithServers : public ExactlyOnce {
 protected:
  static constexpr int kSteps = 1500, kBatch = 5;

  config::TrainingConfig Servers(const std::string& strategy, int gradients) const {
    return Config(kBatch * gradients, "shuffle: false",
                  StrCat("batch_size: ", kBatch, "\nsave_checkpoints_steps: 90\nmax_steps: ",
                         kSteps, "\nstrategy: ", strategy, "\n"));
  }
  RunningTask& Start(const config::TrainingConfig& config, const Task& task) {
    return tasks_.emplace_back(config, Static(task, all_));
  }
  // Returns how often each example of a task's share was used.
  std::vector<int> ShareOf(const std::vector<int>& counts, int rank) const {
    const std::vector<int> groups = LedgerGroups();
    std::vector<int> share;
    for (size_t i = 0; i < counts.size(); ++i) {
      const int owner = shard() == "file" ? groups[i] : static_cast<int>(i % 2);
      if (owner == rank) share.push_back(counts[i]);
    }
    return share;
  }

  const std::vector<Task> all_ = {{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}};
  std::list<RunningTask> tasks_;
};

TEST_P(ExactlyOnceWithServers, WhenTasksOfASynchronousJobAreRestarted) {
  const config::TrainingConfig config = Servers("{mode: sync}", 2);
  for (const Task& task : all_) AddressOf(task);
  std::list<Mortal> servers;
  for (int i : {0, 1}) servers.emplace_back(i, AddressOf({"ps", i})).Start(1);
  RunningTask* chief = &Start(config, {"chief", 0});
  RunningTask* worker = &Start(config, {"worker", 0});
  std::mt19937 random(3);
  int64_t step = 0;
  for (int round = 0; round < 4; ++round) {
    step = std::max(step, chief->Progress().step) + 50 + static_cast<int64_t>(random() % 100);
    ASSERT_TRUE(chief->AwaitStep(step));
    if (round == 2) {
      servers.back().Kill();
      servers.back().Start(2);
    } else {
      RunningTask*& restarted = round == 1 ? chief : worker;
      EXPECT_EQ(restarted->Stop().code(), StatusCode::kCancelled);
      restarted = &Start(config, round == 1 ? Task{"chief", 0} : Task{"worker", 0});
    }
  }
  EXPECT_EQ(chief->End(), OkStatus());
  EXPECT_EQ(worker->End(), OkStatus());
  const std::vector<int> counts = Counts();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), kSteps * 2 * kBatch);
  for (const int rank : {0, 1}) {
    const std::vector<int> share = ShareOf(counts, rank);
    const auto [least, most] = std::ranges::minmax(share);
    EXPECT_LE(most - least, 1) << "rank " << rank << " has used examples twice or not at all";
  }
}

// Each restart may lose the batch that was in flight, but nothing is used twice.
TEST_P(ExactlyOnceWithServers, ExceptForBatchesInFlightOfAnAsynchronousJob) {
  const config::TrainingConfig config = Servers("{mode: async}", 1);
  for (const Task& task : all_) Start(config, task);
  RunningTask* worker = &*std::next(tasks_.begin());
  for (const int64_t step : {200, 500, 800}) {
    ASSERT_TRUE(worker->AwaitStep(step));
    (void)worker->Stop();
    worker = &Start(config, {"worker", 0});
  }
  EXPECT_EQ(worker->End(), OkStatus());
  EXPECT_EQ(tasks_.front().End(), OkStatus());
  const std::vector<int> counts = Counts();
  for (const int rank : {0, 1}) {
    const std::vector<int> share = ShareOf(counts, rank);
    const int most = std::ranges::max(share);
    int missing = 0;
    for (const int uses : share) missing += std::max(0, most - 1 - uses);
    EXPECT_LE(missing, rank == 0 ? 0 : 3 * kBatch) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, ExactlyOnce, testing::Values("auto", "data", "file"));
INSTANTIATE_TEST_SUITE_P(Shards, ExactlyOnceWithServers, testing::Values("data", "file"));

}  // namespace
}  // namespace tfjob::train
