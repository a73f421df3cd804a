// Tests which restarts count towards the back-off limit, and when they exceed it.
// Longer than the rule: a test that is a table of cases exceeds the size limit for functions.
#include "operator/policy/rules/backoff_limit.h"

#include <gtest/gtest.h>

#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using enum ReplicaType;
using enum RestartPolicy;

objects::Pod Running(const char* name, int32_t restarts) {
  return RestartedTimes(MakePod(name, PodPhase::kRunning), restarts);
}

// The limit applies to the sum of the restarts in the status, the recreations due, and the
// container restarts of live pods.
TEST(BackoffLimit, CountsOverAllTypes) {
  const struct {
    const char* sentence;
    int32_t limit;
    int32_t in_status;
    RestartPolicy policy;
    std::vector<objects::Pod> pods;
    bool exceeded;
  } kCases[] = {
      {"nothing happened", 0, 0, kOnFailure, {Running("mnist-worker-0", 0)}, false},
      {"limit 0: the first recreation", 0, 0, kExitCode, {Exited("mnist-worker-0", 137)}, true},
      {"limit 0: the first container restart",
       0,
       0,
       kOnFailure,
       {Running("mnist-worker-0", 1)},
       true},
      {"a recreation within the limit", 3, 2, kExitCode, {Exited("mnist-worker-0", 137)}, false},
      {"a recreation beyond it", 3, 3, kExitCode, {Exited("mnist-worker-0", 137)}, true},
      {"two at once beyond it",
       3,
       2,
       kExitCode,
       {Exited("mnist-worker-0", 137), Exited("mnist-ps-0", 137)},
       true},
      {"a limit that is used up harms nobody by itself",
       3,
       3,
       kExitCode,
       {Running("mnist-worker-0", 0)},
       false},
      {"nor does a number above it, such as after a suspension",
       3,
       5,
       kOnFailure,
       {Running("mnist-worker-0", 0)},
       false},
      {"but the next container restart ends the job",
       3,
       5,
       kOnFailure,
       {Running("mnist-worker-0", 1)},
       true},
      {"container restarts below the limit",
       3,
       0,
       kOnFailure,
       {Running("mnist-worker-0", 2)},
       false},
      {"container restarts reach it over two types",
       3,
       0,
       kOnFailure,
       {Running("mnist-worker-0", 2), Running("mnist-ps-0", 1)},
       true},
      {"together with those of pods that are gone",
       3,
       2,
       kOnFailure,
       {Running("mnist-worker-0", 1)},
       true},
      {"Never counts nothing", 0, 0, kNever, {Running("mnist-worker-0", 5)}, false},
      {"a disruption counts nothing", 0, 0, kOnFailure, {Evicted("mnist-worker-0")}, false},
      {"a recreated pod's container restarts count",
       3,
       0,
       kOnFailure,
       {RestartedTimes(Exited("mnist-worker-0", 1), 3)},
       true},
  };
  for (const auto& c : kCases) {
    api::TFJob job = MakeJob({{kPS, 1, c.policy}, {kWorker, 2, c.policy}});
    job.spec.run_policy.backoff_limit = c.limit;
    job.status.replica_statuses[kWorker].restarts = c.in_status;
    Snapshot snapshot;
    for (const objects::Pod& pod : c.pods) snapshot.pods.push_back(Share(pod));
    EXPECT_EQ(ExceedsBackoffLimit(job, job.status, Arrange(job, job.status, snapshot)), c.exceeded)
        << c.sentence;
    job.spec.run_policy.backoff_limit = std::nullopt;
    EXPECT_FALSE(ExceedsBackoffLimit(job, job.status, Arrange(job, job.status, snapshot)))
        << c.sentence << ", without a limit";
  }
}

// With restartScope Job, three failures in one reconcile count as one restart. They exceed a limit
// of 1 only if the status already counts a restart.
TEST(BackoffLimit, CountsAnAttemptOnce) {
  api::TFJob job = MakeJob({{kWorker, 3, kExitCode}});
  job.spec.run_policy.backoff_limit = 1;
  job.spec.run_policy.restart_scope = api::RestartScope::kJob;
  Snapshot snapshot;
  for (const char* name : {"mnist-worker-0", "mnist-worker-1", "mnist-worker-2"}) {
    snapshot.pods.push_back(Share(Exited(name, 137)));
  }
  EXPECT_FALSE(ExceedsBackoffLimit(job, job.status, Arrange(job, job.status, snapshot)));
  job.status.replica_statuses[kWorker].restarts = 1;
  EXPECT_TRUE(ExceedsBackoffLimit(job, job.status, Arrange(job, job.status, snapshot)));
}

}  // namespace
}  // namespace tfjob::policy
