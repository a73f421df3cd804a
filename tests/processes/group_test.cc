// Disturbs a job that runs as processes, with the strategy multi_worker_mirrored. Each run must
// write the checkpoint of an uninterrupted run, byte for byte. The checkpoint would differ if a
// step were lost, repeated, or taken without one of the tasks.
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "tests/processes/group_job.h"

namespace tfjob::processes {
namespace {

using cluster::Task;

const Task kChief{"chief", 0}, kWorker0{"worker", 0}, kWorker1{"worker", 1}, kWorker2{"worker", 2};
const std::vector<Task> kTasks = {kChief, kWorker0, kWorker1};

// Returns the checkpoint of an uninterrupted run.
const std::map<std::string, std::string>& Expected() {
  static const std::map<std::string, std::string> files = [] {
    GroupJob job("undisturbed", kTasks);
    job.StartAll();
    job.AwaitEnd();
    EXPECT_EQ(job.LastCheckpoint(), GroupSettings().max_steps);
    return job.Files();
  }();
  return files;
}

// Waits until the job has ended, and expects the checkpoint of an uninterrupted run.
void ExpectUndisturbedEnd(GroupJob& job) {
  job.AwaitEnd();
  EXPECT_EQ(job.LastCheckpoint(), GroupSettings().max_steps) << job.Outputs();
  ASSERT_EQ(job.Files().size(), 2u) << "an index and its data";
  EXPECT_TRUE(job.Files() == Expected()) << "the checkpoints differ\n" << job.Outputs();
}

struct Loss {
  Task task;
  std::string transport;
};

class LostTaskTest : public testing::TestWithParam<Loss> {};

TEST_P(LostTaskTest, ItsReplacementGoesOnFromTheStateOfTheOthers) {
  const auto& [lost, transport] = GetParam();
  const GroupSettings settings{.strategy = "multi_worker_mirrored, transport: " + transport};
  GroupJob job(StrCat("lost_", lost.type, "_", transport), kTasks);
  job.StartAll(settings);
  ASSERT_TRUE(job.AwaitSteps(lost)) << job.Outputs();
  job.End(lost, SIGKILL);
  job.Start(lost, settings);
  ASSERT_NO_FATAL_FAILURE(ExpectUndisturbedEnd(job));
  EXPECT_GE(job.FirstStep(lost), 100) << job.Outputs();
}

INSTANTIATE_TEST_SUITE_P(, LostTaskTest,
                         testing::Values(Loss{kWorker1, "shared_memory"}, Loss{kWorker1, "tcp"},
                                         Loss{kChief, "shared_memory"}, Loss{kChief, "tcp"}),
                         [](const auto& info) {
                           return StrCat(info.param.task.type, "_", info.param.transport);
                         });

// The checkpoint with a ring differs from that without one, but not from run to run.
TEST(GroupProcessTest, ARingAddsInTheSameOrderAfterALoss) {
  const GroupSettings ring{.strategy = "multi_worker_mirrored, implementation: ring"};
  GroupJob undisturbed("ring", kTasks), job("ring_lost", kTasks);
  undisturbed.StartAll(ring);
  undisturbed.AwaitEnd();
  job.StartAll(ring);
  ASSERT_TRUE(job.AwaitSteps(kWorker1)) << job.Outputs();
  job.End(kWorker1, SIGKILL);
  job.Start(kWorker1, ring);
  job.AwaitEnd();
  EXPECT_EQ(job.LastCheckpoint(), ring.max_steps) << job.Outputs();
  EXPECT_TRUE(job.Files() == undisturbed.Files()) << "the checkpoints differ";
  EXPECT_NE(job.of(kChief).Output().find("not_shared_memory_because=\"a ring needs sockets\""),
            std::string::npos)
      << job.of(kChief).Output();
  EXPECT_FALSE(job.Files() == Expected()) << "a ring adds in the order of the tree";
  const std::vector<float> weights = job.Weights(),
                           expected = GroupJob::Weights(GroupJob::FolderOf("undisturbed"));
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 1e-3) << i;
}

TEST(GroupProcessTest, WaitsForTheReplacementOfATaskThatWasAskedToEnd) {
  GroupJob job("sigterm", kTasks);
  job.StartAll();
  ASSERT_TRUE(job.AwaitSteps(kWorker1)) << job.Outputs();
  job.End(kWorker1, SIGTERM);
  ASSERT_TRUE(job.of(kChief).AwaitOutput("was asked to end", 10s)) << job.Outputs();
  job.Start(kWorker1);
  ASSERT_NO_FATAL_FAILURE(ExpectUndisturbedEnd(job));
  EXPECT_GE(job.FirstStep(kWorker1), 100) << job.Outputs();
}

// Worker 0 is paused while worker 1 restarts, so that the job does not end before worker 1 has
// joined.
TEST(GroupProcessTest, GoesOnWithoutALostTaskUntilItsReplacementJoins) {
  const GroupSettings shrinks{.strategy = "multi_worker_mirrored, on_failure: shrink"};
  GroupJob job("shrink", kTasks);
  job.StartAll(shrinks);
  ASSERT_TRUE(job.AwaitSteps(kWorker1)) << job.Outputs();
  job.End(kWorker1, SIGKILL);
  const int64_t alone = job.LastLogged(kChief) + 200;
  ASSERT_TRUE(job.AwaitStep(kChief, alone)) << job.Outputs();
  const std::string lost = StrCat("worker 1 (", job.AddressOf(kWorker1), ") was lost at step ");
  EXPECT_TRUE(job.Problem(kChief, "lost worker 1").starts_with(lost))
      << job.Problem(kChief, "lost worker 1");
  job.of(kWorker0).Signal(SIGSTOP);
  job.Start(kWorker1, shrinks);
  EXPECT_TRUE(job.of(kWorker1).AwaitOutput("connected to chief 0", 20s)) << job.Outputs();
  job.of(kWorker0).Signal(SIGCONT);
  job.AwaitEnd();
  const std::string message = job.TerminationMessage(kChief);
  EXPECT_TRUE(message.starts_with("lost tasks: " + lost)) << message;
  EXPECT_NE(message.find("; 2 tasks continue"), std::string::npos) << message;
  EXPECT_EQ(job.TerminationMessage(kWorker1), "") << "only the leader reports losses";
  EXPECT_EQ(job.LastCheckpoint(), shrinks.max_steps) << job.Outputs();
  EXPECT_GE(job.FirstStep(kWorker1), alone) << job.Outputs();
  EXPECT_LT(job.FirstStep(kWorker1), shrinks.max_steps) << job.Outputs();
  (void)Expected();
  const std::vector<float> weights = job.Weights(),
                           expected = GroupJob::Weights(GroupJob::FolderOf("undisturbed"));
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 1e-3) << i;
}

// Worker 0 leads and saves while the chief is lost. Worker 1 is paused while the chief restarts, so
// that the job does not end before the chief has joined.
TEST(GroupProcessTest, GoesOnWithoutTheChiefUntilItReturns) {
  const GroupSettings shrinks{.strategy = "multi_worker_mirrored, on_failure: shrink"};
  GroupJob job("takeover", kTasks);
  job.StartAll(shrinks);
  ASSERT_TRUE(job.AwaitSteps(kChief)) << job.Outputs();
  job.End(kChief, SIGKILL);
  const int64_t alone = job.LastLogged(kWorker0) + 200;
  ASSERT_TRUE(job.AwaitStep(kWorker0, alone)) << job.Outputs();
  EXPECT_NE(job.of(kWorker0).Output().find("takes over the chief's duties"), std::string::npos)
      << job.Outputs();
  job.of(kWorker1).Signal(SIGSTOP);
  job.Start(kChief, shrinks);
  EXPECT_TRUE(job.of(kChief).AwaitOutput("connected to worker 0", 20s)) << job.Outputs();
  job.of(kWorker1).Signal(SIGCONT);
  job.AwaitEnd();
  EXPECT_EQ(job.LastCheckpoint(), shrinks.max_steps) << job.Outputs();
  EXPECT_GE(job.FirstStep(kChief), alone) << job.Outputs();
  EXPECT_LT(job.FirstStep(kChief), shrinks.max_steps) << job.Outputs();
  EXPECT_NE(job.of(kWorker0).Output().find("gives the chief's duties back"), std::string::npos)
      << job.Outputs();
  (void)Expected();
  const std::vector<float> weights = job.Weights(),
                           expected = GroupJob::Weights(GroupJob::FolderOf("undisturbed"));
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 1e-3) << i;
}

TEST(GroupProcessTest, GoesOnFromTheStepAtWhichAllWereAskedToEnd) {
  GroupJob job("sigterm_all", kTasks);
  job.StartAll();
  ASSERT_TRUE(job.AwaitSteps(kChief)) << job.Outputs();
  for (const Task& task : kTasks) job.of(task).Signal(SIGTERM);
  for (const Task& task : kTasks) EXPECT_EQ(job.of(task).AwaitEnd(60s), 143) << job.Outputs();
  const int64_t saved = job.LastCheckpoint();
  EXPECT_GE(saved, 100) << job.Outputs();
  job.StartAll();
  ASSERT_NO_FATAL_FAILURE(ExpectUndisturbedEnd(job));
  for (const Task& task : kTasks) EXPECT_EQ(job.FirstStep(task), saved) << job.Outputs();
}

TEST(GroupProcessTest, ShowsWhoKeepsTheOthersWaiting) {
  GroupJob job("stopped", kTasks);
  job.StartAll();
  ASSERT_TRUE(job.AwaitSteps(kWorker1)) << job.Outputs();
  job.of(kWorker1).Signal(SIGSTOP);
  const auto shown = [&] { return job.Problem(kChief, "stuck workers"); };
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (shown().empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(20ms);
  EXPECT_NE(shown().find("worker 1 (127.0.0.1:"), std::string::npos) << shown() << job.Outputs();
  job.of(kWorker1).Signal(SIGCONT);
  ExpectUndisturbedEnd(job);
}

TEST(GroupProcessTest, WorkerZeroLeadsAGroupWithoutAChief) {
  GroupJob job("no_chief", {kWorker0, kWorker1, kWorker2});
  job.StartAll();
  ExpectUndisturbedEnd(job);
}

TEST(GroupProcessTest, ASingleTaskTakesTheStepsOfOneDevice) {
  std::map<std::string, std::string> files[2];
  const char* const strategies[] = {"multi_worker_mirrored", "one_device"};
  for (size_t i = 0; i < 2; ++i) {
    GroupJob job(StrCat("single_", i), {kChief});
    job.Start(kChief, {.max_steps = 200, .strategy = strategies[i]});
    job.AwaitEnd();
    files[i] = job.Files();
  }
  ASSERT_EQ(files[0].size(), 2u);
  EXPECT_TRUE(files[0] == files[1]);
}

TEST(GroupProcessTest, CompressionGivesTheSameCheckpointOverEachTransport) {
  std::map<std::string, std::string> compressed[2];
  const char* const transports[] = {"tcp", "shared_memory"};
  const auto run = [](const std::string& name, const std::string& keys) {
    GroupJob job(name, kTasks);
    job.StartAll({.max_steps = 100, .strategy = "multi_worker_mirrored, " + keys});
    job.AwaitEnd();
    return job.Files();
  };
  for (size_t i = 0; i < 2; ++i) {
    compressed[i] = run(StrCat("compressed_", transports[i]),
                        StrCat("compression: bfloat16, transport: ", transports[i]));
  }
  ASSERT_EQ(compressed[0].size(), 2u);
  EXPECT_TRUE(compressed[0] == compressed[1]);
  EXPECT_FALSE(run("not_compressed", "transport: tcp") == compressed[0]);
}

TEST(GroupProcessTest, AnEvaluatorEvaluatesTheCheckpoints) {
  const Task evaluator{"evaluator", 0};
  GroupJob job("evaluator", {kChief, kWorker0, evaluator});
  job.StartAll({.max_steps = 300,
                .eval = "{format: linear, weights: [1, -1, 3, 0.5, 2, -2], examples: 50}"});
  job.AwaitEnd();
  EXPECT_NE(job.of(evaluator).Output().find("its last checkpoint evaluated"), std::string::npos)
      << job.Outputs();
}

// Every 10 s, the tasks that wait name the task that has not come.
TEST(GroupProcessTest, NamesATaskThatDoesNotCome) {
  GroupJob job("absent", kTasks);
  job.Start(kChief);
  job.Start(kWorker0);
  const std::string absent = StrCat("worker 1 (", job.AddressOf(kWorker1), ")");
  for (const Task& task : {kChief, kWorker0}) {
    EXPECT_TRUE(job.of(task).AwaitOutput(absent, 30s)) << job.Outputs();
  }
  job.Start(kWorker1);
  ExpectUndisturbedEnd(job);
}

TEST(GroupProcessTest, RefusesATaskWithAnotherTrainingFile) {
  GroupJob job("misfit", kTasks);
  job.Start(kChief);
  job.Start(kWorker0);
  const std::tuple<GroupSettings, const char*, const char*> misfits[] = {
      {{.max_steps = 2001}, "'max_steps: 2000'", "'max_steps: 2001'"},
      {{.batch_size = 9}, "'global batch: 24'", "'global batch: 27'"},
      {{.strategy = "multi_worker_mirrored, timeout_seconds: 60"},
       "'timeout: 0 s'",
       "'timeout: 60 s'"},
      {{.strategy = "multi_worker_mirrored, on_failure: shrink"},
       "'on failure: wait'",
       "'on failure: shrink'"},
      {{.strategy = "multi_worker_mirrored, compression: bfloat16"},
       "'compression: none'",
       "'compression: bfloat16'"}};
  for (const auto& [settings, expected, actual] : misfits) {
    job.Start(kWorker1, settings);
    EXPECT_GT(job.of(kWorker1).AwaitEnd(20s), 0) << job.Outputs();
    const std::string output = job.of(kWorker1).Output();
    EXPECT_NE(output.find(expected), std::string::npos) << output;
    EXPECT_NE(output.find(actual), std::string::npos) << output;
  }
  job.Start(kWorker1);
  ExpectUndisturbedEnd(job);
}

}  // namespace
}  // namespace tfjob::processes
