// Changes the number of tasks of a job that runs as processes, with the strategy
// multi_worker_mirrored. At the end of the run, the weights must equal, up to rounding, those of a
// group of one task that took the same steps. They would differ if a step were lost or repeated, or
// if examples were left out or used twice: the learning rate is so low that the weights are still
// far from the minimum after the last step, so that the effect of every step remains.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/processes/group_job.h"

namespace tfjob::processes {
namespace {

using cluster::Task;

const Task kChief{"chief", 0}, kWorker0{"worker", 0}, kWorker1{"worker", 1}, kWorker2{"worker", 2};
constexpr int kSteps = 20000;

// Returns the settings of a process that starts while the job has this many tasks.
GroupSettings With(size_t listed) {
  return {.max_steps = kSteps,
          .global_batch_size = 24,
          .listed = listed,
          .strategy = "multi_worker_mirrored, min_replicas: 2, max_replicas: 4, on_failure: shrink",
          .optimizer = "{name: sgd, learning_rate: 0.00001}"};
}

// Starts a task while `holds` is stopped, so that the job does not end before the task has joined.
void AddTask(GroupJob& job, const Task& task, size_t listed, const Task& holds) {
  job.of(holds).Signal(SIGSTOP);
  job.Start(task, With(listed));
  EXPECT_TRUE(job.of(task).AwaitOutput("connected to chief 0", 20s)) << job.Outputs();
  job.of(holds).Signal(SIGCONT);
  ASSERT_TRUE(job.AwaitSteps(task)) << job.Outputs();
}

TEST(ElasticProcessTest, TasksJoinAndLeaveAndAreLostWithoutALostStep) {
  GroupJob job("elastic", {kChief, kWorker0, kWorker1, kWorker2});
  job.Start(kChief, With(2));
  job.Start(kWorker0, With(2));
  ASSERT_TRUE(job.AwaitSteps(kChief)) << job.Outputs();
  // A newcomer whose address the other tasks do not know takes part until it is asked to stop.
  ASSERT_NO_FATAL_FAILURE(AddTask(job, kWorker1, 3, kWorker0));
  EXPECT_GE(job.FirstStep(kWorker1), 100) << job.Outputs();
  job.End(kWorker1, SIGTERM);
  ASSERT_TRUE(job.AwaitStep(kChief, job.LastLogged(kChief) + 200)) << job.Outputs();
  // Without worker 0, there are too few tasks.
  job.End(kWorker0, SIGKILL);
  ASSERT_TRUE(job.of(kChief).AwaitOutput("1 more task (strategy.min_replicas is 2)", 30s))
      << job.Outputs();
  const int64_t waits = job.LastLogged(kChief);
  // With another newcomer, there are enough tasks again. Worker 0 returns later.
  job.Start(kWorker2, With(4));
  ASSERT_TRUE(job.AwaitStep(kChief, waits + 200)) << job.Outputs();
  ASSERT_NO_FATAL_FAILURE(AddTask(job, kWorker0, 2, kWorker2));
  EXPECT_LT(job.FirstStep(kWorker0), kSteps);
  for (const Task& task : {kChief, kWorker0, kWorker2})
    EXPECT_EQ(job.of(task).AwaitEnd(60s), 0) << job.Outputs();

  GroupJob alone("elastic_alone", {kChief});
  GroupSettings settings = With(1);
  settings.strategy = "multi_worker_mirrored, min_replicas: 1, max_replicas: 4, on_failure: shrink";
  alone.Start(kChief, settings);
  alone.AwaitEnd();
  const std::vector<float> weights = GroupJob::Weights(GroupJob::FolderOf("elastic"), kSteps),
                           expected =
                               GroupJob::Weights(GroupJob::FolderOf("elastic_alone"), kSteps);
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 2e-6) << i;
}

}  // namespace
}  // namespace tfjob::processes
