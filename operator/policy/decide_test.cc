// Tests Decide as a whole: how a job starts and ends, and which jobs it ignores.
#include "operator/policy/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
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

std::vector<std::string> Names(const std::vector<ServiceToCreate>& services) {
  std::vector<std::string> names;
  for (const ServiceToCreate& service : services) names.push_back(service.name);
  return names;
}

// The first reconcile creates all pods and services, in slot order, and sets startTime.
TEST(Decide, StartsAJob) {
  Scene scene(MakeJob({{kChief}, {kPS, 2}, {kWorker, 2}}), false);
  const Verdict verdict = scene.ReconcileAndWrite(0);
  EXPECT_EQ(verdict.stage, Stage::kRunning);
  EXPECT_EQ(Conditions(verdict.status), "Created");
  EXPECT_EQ(verdict.status.start_time, At(0));
  EXPECT_EQ(verdict.status.ready, "0/5");
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-chief-0", "mnist-ps-0", "mnist-ps-1",
                                            "mnist-worker-0", "mnist-worker-1"));
  EXPECT_EQ(Names(verdict.create_services), Created(verdict));
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).selector,
            "training.kubeflow.org/job-name=mnist,training.kubeflow.org/operator-name="
            "tfjob-controller,training.kubeflow.org/replica-type=worker");
  EXPECT_THAT(verdict.events, IsEmpty());
}

// A job is Running once its chief runs or, if it has no chief, once any worker runs. Without
// workers, any running replica is enough.
TEST(Decide, FollowsTheDriver) {
  Scene scene(StartedJob({{kWorker, 2}}));
  scene.Put(MakePod("mnist-worker-0", PodPhase::kPending));
  EXPECT_EQ(Conditions(scene.ReconcileAndWrite(1).status), "Created");
  scene.Put(Running("mnist-worker-1"));
  EXPECT_EQ(Conditions(scene.ReconcileAndWrite(2).status), "Created Running");
  EXPECT_EQ(scene.job.status.replica_statuses[kWorker].active, 1);
  EXPECT_EQ(scene.job.status.ready, "1/2");

  Scene chiefs(StartedJob({{kChief}, {kWorker, 1}}));
  chiefs.Put(Running("mnist-worker-0"));
  EXPECT_EQ(Conditions(chiefs.ReconcileAndWrite(1).status), "Created");
  chiefs.Put(Running("mnist-chief-0"));
  EXPECT_EQ(Conditions(chiefs.ReconcileAndWrite(2).status), "Created Running");

  Scene servers(StartedJob({{kPS, 2}, {kWorker, 0}}));
  servers.Put(Running("mnist-ps-1"));
  EXPECT_EQ(Conditions(servers.ReconcileAndWrite(1).status), "Created Running");
}

// Decide ignores jobs that other controllers manage and jobs that are being deleted.
TEST(Decide, LeavesOthersJobsAlone) {
  for (const char* manager : {"kueue.x-k8s.io/multikueue", "", "somebody"}) {
    Scene scene(MakeJob({{kWorker, 1}}), false);
    scene.job.spec.run_policy.managed_by = manager;
    Verdict untouched;
    untouched.status = scene.job.status;
    EXPECT_EQ(scene.Reconcile(0), untouched) << manager;
  }
  Scene ours(MakeJob({{kWorker, 1}}));
  ours.job.spec.run_policy.managed_by = "kubeflow.org/training-operator";
  EXPECT_THAT(Created(ours.Reconcile(0)), SizeIs(1));
  ours.job.metadata.deletion_timestamp = At(5);
  EXPECT_EQ(ours.Reconcile(0).stage, Stage::kIgnored);
}

// When the job succeeds, active replicas are counted as succeeded. Later events of these pods do
// not change the status.
TEST(Decide, EndsInSuccessForEver) {
  Scene scene(StartedJob({{kPS, 1}, {kWorker, 2}}));
  scene.Put(Running("mnist-ps-0"));
  scene.Put(Running("mnist-worker-1"));
  scene.Put(Exited("mnist-worker-0", 0));
  Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(Conditions(verdict.status), "Created Succeeded");
  EXPECT_EQ(verdict.status.conditions.back().message, "TFJob ns/mnist successfully completed.");
  EXPECT_EQ(verdict.status.completion_time, At(10));
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).succeeded, 2);
  EXPECT_EQ(verdict.status.replica_statuses.at(kPS).succeeded, 1);
  EXPECT_EQ(verdict.status.replica_statuses.at(kPS).active, 0);
  EXPECT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode", "TFJobSucceeded"));
  EXPECT_THAT(verdict.delete_services, SizeIs(3));

  const api::TFJobStatus end = scene.job.status;
  scene.Put(Exited("mnist-worker-1", 1));
  scene.Remove("mnist-ps-0");
  verdict = scene.ReconcileAndWrite(20);
  EXPECT_EQ(verdict.stage, Stage::kEnded);
  EXPECT_EQ(scene.job.status, end);
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_THAT(verdict.events, IsEmpty());
}

// If a reconcile sees both a success and a failure, the job succeeds.
TEST(Decide, PutsSuccessFirst) {
  Scene scene(StartedJob({{kChief}, {kWorker, 1}}));
  scene.job.spec.run_policy.active_deadline_seconds = 5;
  scene.Put(Exited("mnist-chief-0", 0));
  scene.Put(Exited("mnist-worker-0", 1));
  const Verdict verdict = scene.ReconcileAndWrite(100);
  EXPECT_EQ(Conditions(verdict.status), "Created Succeeded");
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).failed, 1);
}

// A permanent failure ends the job. Under ExitCode, the event is a warning.
TEST(Decide, EndsInFailure) {
  Scene scene(StartedJob({{kWorker, 2, kExitCode}}));
  scene.Put(Running("mnist-worker-0"));
  scene.Put(Exited("mnist-worker-1", 3));
  const Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(Conditions(verdict.status), "Created Failed");
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).failed, 1);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).active, 1);
  ASSERT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode", "TFJobFailed"));
  EXPECT_EQ(verdict.events[1].type, objects::EventType::kWarning);
  EXPECT_THAT(Created(verdict), IsEmpty());
}

// A job fails at its deadline even if nothing else happens, because the verdict requests a
// reconcile at that time.
TEST(Decide, WakesForTheDeadline) {
  Scene scene(StartedJob({{kWorker, 1}}));
  scene.job.spec.run_policy.active_deadline_seconds = 60;
  scene.Put(Running("mnist-worker-0"));
  EXPECT_EQ(scene.ReconcileAndWrite(10).requeue_after, Duration(50s));
  EXPECT_EQ(Conditions(scene.ReconcileAndWrite(59).status), "Created Running");
  const Verdict verdict = scene.ReconcileAndWrite(60);
  EXPECT_EQ(Conditions(verdict.status), "Created (Running) Failed");
  EXPECT_EQ(verdict.status.conditions.back().message,
            "Job mnist has failed because it was active longer than specified deadline");
}

// The clean-up deletes pods according to cleanPodPolicy, and all services. After that, the job
// waits for its TTL.
TEST(Decide, CleansUpByPolicy) {
  const struct {
    api::CleanPodPolicy policy;
    std::vector<std::string> deleted;
  } kCases[] = {
      {api::CleanPodPolicy::kNone, {}},
      {api::CleanPodPolicy::kRunning, {"mnist-ps-0", "mnist-worker-2"}},
      {api::CleanPodPolicy::kAll,
       {"mnist-ps-0", "mnist-worker-0", "mnist-worker-1", "mnist-worker-2"}},
  };
  for (const auto& c : kCases) {
    Scene scene(StartedJob({{kPS, 2}, {kWorker, 3}}));
    scene.job.spec.run_policy.clean_pod_policy = c.policy;
    scene.job.spec.run_policy.ttl_seconds_after_finished = 30;
    scene.Put(Running("mnist-ps-0"));
    scene.Put(Terminating(Running("mnist-ps-1"), 1));
    scene.Put(Exited("mnist-worker-0", 0));
    scene.Put(Exited("mnist-worker-1", 1));
    scene.Put(MakePod("mnist-worker-2", PodPhase::kPending));
    const Verdict end = scene.ReconcileAndWrite(10);
    EXPECT_EQ(Deleted(end), c.deleted) << api::Name(c.policy);
    const Verdict later = scene.ReconcileAndWrite(20);
    EXPECT_EQ(Deleted(later), c.deleted) << api::Name(c.policy);
    EXPECT_THAT(later.delete_services, SizeIs(5));
    EXPECT_FALSE(later.delete_job);
    EXPECT_EQ(later.requeue_after, Duration(20s));
    EXPECT_TRUE(scene.ReconcileAndWrite(40).delete_job);
  }
}

// The kubelet still reports Running for a moment after the last container has terminated. Such a
// pod is not deleted, so its logs are kept.
TEST(Decide, CleanUpSparesPodsThatOnlySeemToRun) {
  objects::Pod chief = Exited("mnist-chief-0", 0);
  chief.phase = PodPhase::kRunning;
  for (const bool sidecar : {false, true}) {
    Scene scene(StartedJob({{kChief, 1, RestartPolicy::kOnFailure}}));
    scene.job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kRunning;
    scene.Put(sidecar ? WithSidecar(chief, true) : chief);
    const Verdict end = scene.ReconcileAndWrite(10);
    EXPECT_EQ(Conditions(end.status), "Created Succeeded");
    EXPECT_THAT(Deleted(end), SizeIs(sidecar ? 1 : 0));
  }
}

// A completed index remains completed and counted, even if its pod is gone. The pod is never
// recreated.
TEST(Decide, RemembersCompletedIndexes) {
  Scene scene(StartedJob({{kChief}, {kWorker, 3}}));
  scene.Put(Running("mnist-chief-0"));
  scene.Put(Exited("mnist-worker-0", 0));
  scene.Put(WithSidecar(Exited("mnist-worker-1", 0), true));
  scene.Put(Running("mnist-worker-2"));
  Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).completed_indexes, "0-1");
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).succeeded, 2);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).active, 1);
  EXPECT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode", "ExitedWithCode"));
  scene.Remove("mnist-worker-0");
  scene.Remove("mnist-worker-1");
  verdict = scene.ReconcileAndWrite(20);
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_THAT(verdict.events, IsEmpty());
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).succeeded, 2);
}

// A pod that completed and disappeared before any reconcile saw it still counts, because the watch
// reported its last state.
TEST(Decide, RemembersDepartedPods) {
  Scene scene(StartedJob({{kChief}, {kWorker, 2}}));
  scene.snapshot.departed = {Share(Exited("mnist-worker-0", 0)),
                             Share(Terminating(Running("mnist-worker-1"), 5))};
  const Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).completed_indexes, "0");
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-chief-0", "mnist-worker-1"));
}

// A pod that failed and disappeared is counted once. Its replacement is created as soon as the
// status records the failure, even if the pod is still among the departed pods.
TEST(Decide, CountsADepartedFailureOnce) {
  Scene scene(StartedJob({{kWorker, 2, kOnFailure}}));
  scene.Put(Running("mnist-worker-0"));
  scene.Put(Running("mnist-worker-1"));
  scene.ReconcileAndWrite(5);
  scene.Remove("mnist-worker-1");
  scene.snapshot.departed = {Share(Exited("mnist-worker-1", 1))};
  Verdict verdict = scene.Reconcile(10);
  EXPECT_EQ(scene.Reconcile(10), verdict);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).restarts, 1);
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_THAT(Deleted(verdict), IsEmpty());
  EXPECT_THAT(Waiting(verdict), ElementsAre("mnist-worker-1"));
  EXPECT_EQ(verdict.requeue_after, Duration::zero());
  EXPECT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode", "TFJobRestarting"));
  scene.ReconcileAndWrite(10);
  verdict = scene.ReconcileAndWrite(11);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).restarts, 1);
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-1"));
  EXPECT_THAT(verdict.events, IsEmpty());
}

// Under Never, the failure of a departed pod ends the job, unless the failure is tolerated. In a
// suspended job, the failure has no effect.
TEST(Decide, JudgesADepartedFailureByThePolicy) {
  Scene scene(StartedJob({{kPS, 1}, {kWorker, 2}}));
  scene.Put(Running("mnist-ps-0"));
  scene.Put(Running("mnist-worker-0"));
  scene.snapshot.departed = {Share(Exited("mnist-worker-1", 1))};
  EXPECT_EQ(Conditions(scene.Reconcile(10).status), "Created Failed");
  scene.job.spec.enable_dynamic_worker = true;
  const Verdict tolerated = scene.Reconcile(10);
  EXPECT_EQ(Conditions(tolerated.status), "Created Running");
  EXPECT_THAT(Created(tolerated), ElementsAre("mnist-worker-1"));
  scene.job.spec.enable_dynamic_worker = false;
  scene.job.spec.run_policy.suspend = true;
  const Verdict suspended = scene.Reconcile(10);
  EXPECT_EQ(Conditions(suspended.status), "Created Suspended");
  EXPECT_EQ(suspended.status.replica_statuses.at(kWorker).failed, 0);
}

// With enableDynamicWorker, if a worker fails permanently, its pod is kept and counted, and the
// failure is reported once.
TEST(Decide, ToleratesDynamicWorkers) {
  Scene scene(StartedJob({{kPS, 1}, {kWorker, 2}}));
  scene.job.spec.enable_dynamic_worker = true;
  scene.Put(Running("mnist-ps-0"));
  scene.Put(Running("mnist-worker-0"));
  scene.Put(Exited("mnist-worker-1", 1));
  Verdict verdict = scene.ReconcileAndWrite(10);
  EXPECT_EQ(Conditions(verdict.status), "Created Running");
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).failed, 1);
  EXPECT_THAT(Deleted(verdict), IsEmpty());
  ASSERT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode"));
  scene.history.reported.insert(verdict.events[0].cause);
  EXPECT_THAT(scene.ReconcileAndWrite(11).events, IsEmpty());
}

// Warnings about a spec that is accepted are sent only once, at the first reconcile.
TEST(Decide, WarnsAboutTheSpecOnce) {
  Scene scene(MakeJob({{kChief, 2}, {kWorker, 1}}));
  const Json with_policy = {
      {"spec", {{"restartPolicy", "Always"}, {"containers", {{{"name", "tensorflow"}}}}}}};
  scene.job.spec.replicas[kWorker].pod_template = std::make_shared<const Json>(with_policy);
  scene.job.spec.run_policy.scheduling_policy.emplace().min_available = 9;
  const Verdict verdict = scene.ReconcileAndWrite(0);
  EXPECT_THAT(Reasons(verdict),
              ElementsAre("SetPodTemplateRestartPolicy", "TFJobSpecWarning", "TFJobSpecWarning"));
  EXPECT_THAT(scene.ReconcileAndWrite(1).events, IsEmpty());
}

// A job that cannot run fails with a condition that contains the reason. It is cleaned up like any
// other job that has ended.
TEST(Refuse, FailsTheJob) {
  Scene scene(MakeJob({{kWorker, 1}}));
  const Verdict verdict =
      Refuse(scene.job, scene.snapshot, InvalidArgument("spec.x: no"), At(0), DecisionOptions());
  EXPECT_EQ(Conditions(verdict.status), "Created Failed");
  EXPECT_EQ(verdict.status.conditions.back().reason, "TFJobFailedValidation");
  EXPECT_EQ(verdict.status.conditions.back().message,
            "TFJob ns/mnist has failed because the spec is invalid: spec.x: no");
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_EQ(verdict.status.completion_time, At(0));
  scene.job.status = verdict.status;
  EXPECT_EQ(
      Refuse(scene.job, scene.snapshot, InvalidArgument("y"), At(9), DecisionOptions()).status,
      verdict.status);
}

// Equal causes for the same job yield equal event names; a different cause or a different job
// yields a different name.
TEST(EventName, IsDeterministic) {
  api::TFJob job = MakeJob({{kWorker, 1}});
  const std::string name = EventName(job, "exit/uid-1");
  EXPECT_EQ(name.size(), std::string("mnist.").size() + 16);
  EXPECT_EQ(EventName(job, "exit/uid-1"), name);
  EXPECT_NE(EventName(job, "exit/uid-2"), name);
  job.metadata.uid = "other";
  EXPECT_NE(EventName(job, "exit/uid-1"), name);
}

// Checks the printed form of a verdict.
TEST(Print, ShowsTheVerdict) {
  Scene scene(StartedJob({{kWorker, 2, kOnFailure}}), false);
  scene.job.status = {};
  scene.Put(Terminating(Running("mnist-worker-1"), 0));
  const Verdict verdict = scene.Reconcile(0);
  const Json json = Print(verdict);
  EXPECT_EQ(json["stage"], "Running");
  EXPECT_EQ(json["createPods"], (Json::array({{{"name", "mnist-worker-0"}, {"attempt", 0}}})));
  EXPECT_EQ(json["createServices"], (Json::array({"mnist-worker-0", "mnist-worker-1"})));
  EXPECT_EQ(
      json["waitingPods"],
      (Json::array({{{"name", "mnist-worker-1"}, {"why", "the previous pod still exists"}}})));
  EXPECT_EQ(json["status"]["conditions"][1]["type"], "Restarting");
  EXPECT_EQ(json["events"][0]["reason"], "TFJobRestarting");
}

}  // namespace
}  // namespace tfjob::policy
