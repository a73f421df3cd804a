#include "operator/policy/rules/suspend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum ReplicaType;
using enum RestartPolicy;

objects::Pod Running(const std::string& name) {
  return MakePod(name, PodPhase::kRunning);
}

// A job that is created suspended gets its conditions, but no objects.
TEST(Suspend, BeforeTheStart) {
  Scene scene(MakeJob({{kWorker, 2}}), false);
  scene.job.spec.run_policy.suspend = true;
  const Verdict verdict = scene.ReconcileAndWrite(0);
  EXPECT_EQ(verdict.stage, Stage::kSuspended);
  EXPECT_EQ(Conditions(verdict.status), "Created Suspended");
  EXPECT_EQ(verdict.status.start_time, std::nullopt);
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_THAT(verdict.create_services, IsEmpty());
  EXPECT_THAT(Reasons(verdict), ElementsAre("TFJobSuspended"));
  EXPECT_THAT(scene.ReconcileAndWrite(1).events, IsEmpty());
}

// Suspension deletes all objects and keeps startTime. A running pod counts as active until it
// is gone.
TEST(Suspend, WhileRunning) {
  Scene scene(StartedJob({{kPS, 1, kOnFailure}, {kWorker, 2, kOnFailure}}));
  scene.Put(RestartedTimes(Running("mnist-ps-0"), 2));
  scene.Put(Running("mnist-worker-0"));
  scene.Put(Exited("mnist-worker-1", 0));
  scene.ReconcileAndWrite(1);
  scene.job.spec.run_policy.suspend = true;
  Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(Conditions(verdict.status), "Created (Running) Suspended");
  EXPECT_EQ(verdict.status.conditions[1].reason, "TFJobSuspended");
  EXPECT_EQ(verdict.status.start_time, At(0));
  EXPECT_THAT(Deleted(verdict), ElementsAre("mnist-ps-0", "mnist-worker-0", "mnist-worker-1"));
  EXPECT_THAT(verdict.delete_services, SizeIs(3));
  EXPECT_EQ(verdict.status.replica_statuses.at(kPS).restarts, 2);

  scene.Put(Terminating(RestartedTimes(Running("mnist-ps-0"), 2), 10));
  scene.Put(Terminating(Running("mnist-worker-0"), 10));
  scene.Remove("mnist-worker-1");
  verdict = scene.ReconcileAndWrite(11);
  EXPECT_EQ(verdict.status.replica_statuses.at(kPS).active, 1);
  EXPECT_EQ(verdict.status.replica_statuses.at(kPS).restarts, 2);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).active, 1);
  scene.snapshot.pods.clear();
  verdict = scene.ReconcileAndWrite(12);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).active, 0);
}

// Resuming starts the job over once the old pods are gone: the job has a new startTime, and no
// completed chief, master or worker.
TEST(Suspend, ThenResume) {
  Scene scene(StartedJob({{kEvaluator}, {kWorker, 2}}));
  scene.job.status.replica_statuses[kWorker].completed_indexes = "1";
  scene.job.status.replica_statuses[kEvaluator].completed_indexes = "0";
  scene.job.spec.run_policy.suspend = true;
  scene.Put(Running("mnist-worker-0"));
  scene.ReconcileAndWrite(10);
  scene.job.spec.run_policy.suspend = false;
  scene.Put(Terminating(Running("mnist-worker-0"), 10));
  Verdict verdict = scene.ReconcileAndWrite(20);
  EXPECT_EQ(Conditions(verdict.status), "Created Suspended");
  EXPECT_THAT(Created(verdict), IsEmpty());

  scene.snapshot.pods.clear();
  verdict = scene.ReconcileAndWrite(30);
  EXPECT_EQ(Conditions(verdict.status), "Created (Suspended)");
  EXPECT_EQ(verdict.status.conditions.back().reason, "TFJobResumed");
  EXPECT_EQ(verdict.status.start_time, At(30));
  EXPECT_THAT(Reasons(verdict), ElementsAre("TFJobResumed"));
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-0", "mnist-worker-1"));
  EXPECT_THAT(scene.ReconcileAndWrite(31).events, IsEmpty());
}

// A worker that completed before the suspension does not count as done in the resumed run, even if
// the operator notices only after the resume that the worker's pod is gone.
TEST(Suspend, ThenResumeForgetsWhoWasDoneBefore) {
  Scene scene(StartedJob({{kWorker, 2}}));
  scene.job.spec.run_policy.suspend = true;
  scene.Put(Running("mnist-worker-0"));
  scene.ReconcileAndWrite(10);
  scene.job.spec.run_policy.suspend = false;
  scene.Remove("mnist-worker-0");
  scene.snapshot.departed.push_back(Share(Exited("mnist-worker-0", 0)));
  const Verdict verdict = scene.ReconcileAndWrite(20);
  EXPECT_EQ(Conditions(verdict.status), "Created (Suspended)");
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-0", "mnist-worker-1"));
}

// A job that has ended can no longer be suspended.
TEST(Suspend, NotAfterTheEnd) {
  Scene scene(StartedJob({{kWorker, 1}}));
  scene.Put(Exited("mnist-worker-0", 0));
  scene.ReconcileAndWrite(1);
  scene.job.spec.run_policy.suspend = true;
  const Verdict verdict = scene.ReconcileAndWrite(2);
  EXPECT_EQ(Conditions(verdict.status), "Created Succeeded");
  EXPECT_THAT(Deleted(verdict), IsEmpty());
}

}  // namespace
}  // namespace tfjob::policy
