// Tests restarts over several reconciles of a job.
#include "operator/policy/rules/restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/policy/decide.h"
#include "operator/policy/rules/counted_restarts.h"
#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using enum ReplicaType;
using enum RestartPolicy;

objects::Pod Running(const std::string& name) {
  return MakePod(name, PodPhase::kRunning);
}

// Sets up a job with a running parameter server and two running workers, one reconcile after its
// start.
struct RunningJob : Scene {
  explicit RunningJob(RestartPolicy policy, api::RestartScope scope = api::RestartScope::kReplica)
      : Scene(WithScope(policy, scope)) {
    Put(Running("mnist-ps-0"));
    Put(Running("mnist-worker-0"));
    Put(Running("mnist-worker-1"));
    ReconcileAndWrite(1);
  }

  static api::TFJob WithScope(RestartPolicy policy, api::RestartScope scope) {
    api::TFJob job = StartedJob({{kPS, 1, policy}, {kWorker, 2, policy}});
    job.spec.run_policy.restart_scope = scope;
    return job;
  }
  const api::ReplicaStatus& workers() { return job.status.replica_statuses[kWorker]; }
};

// When a replica fails, the status is written first, then the pod is deleted, and then the new pod
// is created. The job is Restarting until the new pod exists. The failure is counted once.
TEST(Restart, ReplacesAFailedReplica) {
  RunningJob scene(kExitCode);
  ASSERT_EQ(Conditions(scene.job.status), "Created Running");
  scene.Put(Exited("mnist-worker-1", 137));
  Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(Conditions(verdict.status), "Created Restarting");
  EXPECT_EQ(verdict.status.conditions.back().message,
            "job mnist is restarting because Worker replica(s) failed.");
  EXPECT_EQ(scene.workers().restarts, 1);
  EXPECT_EQ(scene.workers().active, 1);
  EXPECT_EQ(scene.workers().failed, 0);
  EXPECT_THAT(Deleted(verdict), ElementsAre("mnist-worker-1"));
  EXPECT_EQ(verdict.delete_pods[0].uid, "uid-mnist-worker-1");
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode", "TFJobRestarting"));

  // If the operator stops before it has deleted the pod, the next reconcile deletes the pod but
  // does not count the failure again.
  verdict = scene.ReconcileAndWrite(11);
  EXPECT_EQ(scene.workers().restarts, 1);
  EXPECT_THAT(Deleted(verdict), ElementsAre("mnist-worker-1"));
  EXPECT_THAT(verdict.events, IsEmpty());

  scene.Remove("mnist-worker-1");
  verdict = scene.ReconcileAndWrite(12);
  EXPECT_EQ(Conditions(verdict.status), "Created Restarting");
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-1"));

  objects::Pod next = MakePod("mnist-worker-1", PodPhase::kPending);
  next.metadata.uid = "second";
  scene.Put(next);
  verdict = scene.ReconcileAndWrite(13);
  EXPECT_EQ(Conditions(verdict.status), "Created Running");
  EXPECT_EQ(scene.workers().restarts, 1);
}

// A counted pod remains recorded for 5 minutes after it is gone. An operator whose watch is behind
// still sees the pod, and must not count it again.
TEST(Restart, CountsAPodOnceThatAnotherOperatorStillSees) {
  RunningJob scene(kExitCode);
  scene.Put(Exited("mnist-worker-1", 137));
  scene.ReconcileAndWrite(10);
  objects::Pod next = MakePod("mnist-worker-1", PodPhase::kRunning);
  next.metadata.uid = "second";
  scene.Put(next);
  scene.ReconcileAndWrite(11);
  scene.Put(RestartedTimes(Terminating(Running("mnist-worker-0"), 12), 1));
  scene.ReconcileAndWrite(12);
  EXPECT_EQ(scene.workers().restarts, 2);
  EXPECT_THAT(scene.workers().replacing, ElementsAre("uid-mnist-worker-0", "uid-mnist-worker-1"));

  History of_another;
  Snapshot behind = scene.snapshot;
  behind.pods = {Share(Exited("mnist-worker-1", 137)), Share(Running("mnist-worker-0"))};
  behind.history = &of_another;
  const Verdict verdict = Decide(scene.job, behind, At(13), scene.options);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).restarts, 2);
  EXPECT_THAT(verdict.events, IsEmpty());

  next.phase = PodPhase::kPending;
  scene.Put(next);
  scene.ReconcileAndWrite(310);
  EXPECT_THAT(scene.workers().replacing, SizeIs(2));
  next.phase = PodPhase::kRunning;
  scene.Put(next);
  scene.ReconcileAndWrite(311);
  EXPECT_THAT(scene.workers().replacing, ElementsAre("uid-mnist-worker-0"));
}

// After a failure of very many pods, the status must not grow without limit.
TEST(Restart, RemembersAtMost256GonePods) {
  api::TFJob job = StartedJob({{kWorker, 2, kExitCode}});
  Scene scene(job);
  std::vector<std::string>& counted = scene.job.status.replica_statuses[kWorker].replacing;
  for (int i = 1000; i < 1200; ++i) counted.push_back(StrCat(i));
  scene.ReconcileAndWrite(1);
  for (int i = 1200; i < 1300; ++i) counted.push_back(StrCat(i));
  scene.Put(Running("mnist-worker-0"));
  const Verdict verdict = scene.Reconcile(2);
  const std::vector<std::string>& kept = verdict.status.replica_statuses.at(kWorker).replacing;
  EXPECT_LE(kept.size(), kMaxGonePods);
  EXPECT_THAT(kept, Contains("1299"));
  EXPECT_THAT(kept, Not(Contains("1000")));
}

// The pods disappeared at the same time, so none has been gone longer than another. Nevertheless,
// exactly kMaxGonePods of them must remain recorded.
TEST(Restart, RemembersAsManyOfThePodsThatWentAtOnce) {
  Scene scene(StartedJob({{kWorker, 2, kExitCode}}));
  std::vector<std::string>& counted = scene.job.status.replica_statuses[kWorker].replacing;
  for (int i = 1000; i < 1300; ++i) counted.push_back(StrCat(i));
  scene.Put(Running("mnist-worker-0"));
  const Verdict verdict = scene.Reconcile(2);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).replacing.size(), kMaxGonePods);
}

// Checks, for failures under each policy, which pods are deleted, what is counted, and the
// job's conditions.
TEST(Restart, FollowsThePolicy) {
  const struct {
    const char* sentence;
    RestartPolicy policy;
    objects::Pod pod;
    const char* conditions;
    int32_t restarts;
  } kCases[] = {
      {"Never fails", kNever, Exited("mnist-worker-1", 137), "Created (Running) Failed", 0},
      {"ExitCode 1 fails", kExitCode, Exited("mnist-worker-1", 1), "Created (Running) Failed", 0},
      {"ExitCode 137 restarts", kExitCode, Exited("mnist-worker-1", 137), "Created Restarting", 1},
      {"OnFailure restarts", kOnFailure, Exited("mnist-worker-1", 1), "Created Restarting", 1},
      {"Always restarts", kAlways, Exited("mnist-worker-1", 1), "Created Restarting", 1},
      {"an eviction restarts without counting", kOnFailure, Evicted("mnist-worker-1"),
       "Created Restarting", 0},
      {"container restarts of a lost pod are counted", kOnFailure,
       RestartedTimes(Terminating(Running("mnist-worker-1"), 5), 4), "Created Restarting", 4},
      {"a failure and its container restarts", kOnFailure,
       RestartedTimes(Exited("mnist-worker-1", 1), 4), "Created Restarting", 5},
  };
  for (const auto& c : kCases) {
    RunningJob scene(c.policy);
    scene.Put(c.pod);
    scene.ReconcileAndWrite(10);
    EXPECT_EQ(Conditions(scene.job.status), c.conditions) << c.sentence;
    EXPECT_EQ(scene.workers().restarts, c.restarts) << c.sentence;
    scene.ReconcileAndWrite(11);
    EXPECT_EQ(scene.workers().restarts, c.restarts) << c.sentence << ", looked at again";
  }
}

// If a user deletes a running pod, it is recreated under every restart policy, and the job does not
// fail.
TEST(Restart, ReplacesADeletedPod) {
  for (const RestartPolicy policy : api::kRestartPolicies) {
    RunningJob scene(policy);
    scene.Put(Terminating(Running("mnist-worker-1"), 5));
    Verdict verdict = scene.ReconcileAndWrite(10);
    EXPECT_EQ(Conditions(verdict.status),
              policy == kNever ? "Created Running" : "Created Restarting");
    EXPECT_EQ(scene.workers().active, 1);
    EXPECT_EQ(scene.workers().failed, 0);
    EXPECT_THAT(Deleted(verdict), IsEmpty());
    EXPECT_THAT(Waiting(verdict), ElementsAre("mnist-worker-1"));
    // While the pod is being stopped, its container fails.
    objects::Pod stopped = Terminating(Exited("mnist-worker-1", 143), 5);
    stopped.containers[0].finished_at = At(6);
    scene.Put(stopped);
    verdict = scene.ReconcileAndWrite(11);
    EXPECT_EQ(scene.workers().failed, 0);
    EXPECT_EQ(scene.workers().restarts, 0);
    scene.Remove("mnist-worker-1");
    verdict = scene.ReconcileAndWrite(12);
    EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-1"));
  }
}

// A pod that has suddenly disappeared is replaced, too, and one event reports this.
TEST(Restart, ReplacesAPodThatVanished) {
  RunningJob scene(kOnFailure);
  scene.Remove("mnist-worker-1");
  Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(Conditions(verdict.status), "Created Restarting");
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-1"));
  ASSERT_THAT(Reasons(verdict), ElementsAre("TFJobRestarting"));
  scene.history.reported.insert(verdict.events[0].cause);
  verdict = scene.ReconcileAndWrite(11);
  EXPECT_THAT(verdict.events, IsEmpty());
  EXPECT_EQ(scene.workers().restarts, 0);
}

// The second recreation is delayed by one second, the third by two seconds.
TEST(Restart, WaitsLongerEachTime) {
  RunningJob scene(kOnFailure);
  int64_t now = 10;
  objects::Pod pod = Running("mnist-worker-1");
  for (const int64_t delay : {0, 1, 2, 4}) {
    objects::Pod failed = Exited("mnist-worker-1", 1);
    failed.metadata.uid = pod.metadata.uid;
    scene.Put(failed);
    scene.ReconcileAndWrite(now);
    scene.Remove("mnist-worker-1");
    Verdict verdict = scene.Reconcile(now);
    EXPECT_EQ(Created(verdict).size(), delay == 0 ? 1 : 0) << delay;
    if (delay > 0) {
      EXPECT_EQ(verdict.requeue_after, Duration(std::chrono::seconds(delay)));
      EXPECT_THAT(Waiting(verdict), ElementsAre("mnist-worker-1"));
    }
    now += delay;
    EXPECT_THAT(Created(scene.ReconcileAndWrite(now)), ElementsAre("mnist-worker-1"));
    pod.metadata.uid = StrCat("after-", delay);
    scene.Put(pod);
    scene.ReconcileAndWrite(now);
    EXPECT_EQ(Conditions(scene.job.status), "Created Running");
  }
}

// The job remains Restarting until the replica that drives the job runs.
TEST(Restart, StandsUntilRunningHolds) {
  Scene scene(StartedJob({{kChief, 1, kOnFailure}}));
  scene.Put(Running("mnist-chief-0"));
  scene.ReconcileAndWrite(1);
  scene.Put(Exited("mnist-chief-0", 1));
  scene.ReconcileAndWrite(2);
  objects::Pod next = MakePod("mnist-chief-0", PodPhase::kPending);
  next.metadata.uid = "second";
  scene.Put(next);
  EXPECT_EQ(Conditions(scene.ReconcileAndWrite(3).status), "Created Restarting");
  next.phase = PodPhase::kRunning;
  scene.Put(next);
  EXPECT_EQ(Conditions(scene.ReconcileAndWrite(4).status), "Created Running");
}

// With restartScope Job, one failure ends the whole attempt and is counted once. The next attempt
// starts when the pods of the old attempt are gone.
TEST(RestartScopeJob, StartsANewAttempt) {
  RunningJob scene(kExitCode, api::RestartScope::kJob);
  scene.job.status.replica_statuses[kWorker].completed_indexes = "0";
  scene.Put(Exited("mnist-worker-0", 0));
  scene.job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
  scene.Put(Exited("mnist-worker-1", 137));
  scene.Put(RestartedTimes(Running("mnist-ps-0"), 2));
  Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(verdict.status.attempt, 1);
  EXPECT_EQ(Conditions(verdict.status), "Created Restarting");
  EXPECT_EQ(scene.workers().restarts, 1);
  EXPECT_EQ(scene.workers().completed_indexes, "");
  EXPECT_EQ(scene.job.status.replica_statuses[kPS].restarts, 2);
  EXPECT_THAT(Deleted(verdict), ElementsAre("mnist-ps-0", "mnist-worker-0", "mnist-worker-1"));
  EXPECT_THAT(Created(verdict), IsEmpty());

  scene.Remove("mnist-worker-0");
  scene.Remove("mnist-worker-1");
  scene.Put(Terminating(RestartedTimes(Running("mnist-ps-0"), 2), 10));
  verdict = scene.ReconcileAndWrite(11);
  EXPECT_EQ(verdict.status.attempt, 1);
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_THAT(verdict.events, IsEmpty());

  scene.Remove("mnist-ps-0");
  verdict = scene.ReconcileAndWrite(12);
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-ps-0", "mnist-worker-0", "mnist-worker-1"));
  EXPECT_EQ(verdict.create_pods[0].attempt, 1);
  for (const char* name : {"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}) {
    objects::Pod next = WithAttempt(Running(name), 1);
    next.metadata.uid = StrCat("second-", name);
    scene.Put(next);
  }
  verdict = scene.ReconcileAndWrite(13);
  EXPECT_EQ(Conditions(verdict.status), "Created Running");
  EXPECT_EQ(scene.workers().restarts, 1);
}

// A disruption starts a new attempt but is not counted. If a replica with policy Never is lost, the
// other replicas are not restarted.
TEST(RestartScopeJob, DistinguishesDisruptionsAndNever) {
  RunningJob disrupted(kOnFailure, api::RestartScope::kJob);
  disrupted.Put(Terminating(Running("mnist-worker-1"), 5));
  disrupted.ReconcileAndWrite(10);
  EXPECT_EQ(disrupted.job.status.attempt, 1);
  EXPECT_EQ(disrupted.workers().restarts, 0);

  RunningJob never(kNever, api::RestartScope::kJob);
  never.Put(Terminating(Running("mnist-worker-1"), 5));
  never.ReconcileAndWrite(10);
  EXPECT_EQ(never.job.status.attempt, 0);

  RunningJob vanished(kOnFailure, api::RestartScope::kJob);
  vanished.Remove("mnist-worker-1");
  vanished.ReconcileAndWrite(10);
  vanished.ReconcileAndWrite(11);
  EXPECT_EQ(vanished.job.status.attempt, 1);
}

// If another recreation would exceed the limit, the job fails instead. The pod is kept for
// its logs.
TEST(Restart, EndsAtTheBackoffLimit) {
  RunningJob scene(kExitCode);
  scene.job.spec.run_policy.backoff_limit = 1;
  scene.job.status.replica_statuses[kWorker].restarts = 1;
  scene.Put(Exited("mnist-worker-1", 137));
  const Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(Conditions(verdict.status), "Created (Running) Failed");
  EXPECT_EQ(verdict.status.conditions.back().message,
            "Job mnist has failed because it has reached the specified backoff limit");
  EXPECT_EQ(scene.workers().failed, 1);
  EXPECT_EQ(scene.workers().restarts, 1);
  EXPECT_EQ(verdict.status.completion_time, At(10));
  EXPECT_THAT(Deleted(verdict), IsEmpty());
  EXPECT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode", "TFJobFailed"));
}

}  // namespace
}  // namespace tfjob::policy
