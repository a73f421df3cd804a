// Tests which objects should exist: scaling, pods without a slot, taken names, lost nodes and
// services.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/objects/service.h"
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

// Scaling down deletes the pods and services with the highest indexes. Scaling up creates the
// missing objects. Neither counts as a failure.
TEST(Scale, DownAndUp) {
  Scene scene(StartedJob({{kWorker, 3, kOnFailure}}));
  for (const char* name : {"mnist-worker-0", "mnist-worker-1", "mnist-worker-2"}) {
    scene.Put(RestartedTimes(Running(name), 1));
  }
  scene.ReconcileAndWrite(1);
  scene.job.spec.replicas[kWorker].replicas = 1;
  Verdict verdict = scene.ReconcileAndWrite(2);
  EXPECT_THAT(Deleted(verdict), ElementsAre("mnist-worker-1", "mnist-worker-2"));
  EXPECT_THAT(verdict.delete_services, SizeIs(2));
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).active, 1);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).failed, 0);
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).restarts, 2);
  EXPECT_EQ(Conditions(verdict.status), "Created Running");

  // A terminating pod beyond the slots has no effect.
  scene.Remove("mnist-worker-1");
  scene.Put(Terminating(RestartedTimes(Running("mnist-worker-2"), 1), 2));
  scene.snapshot.services.resize(1);
  verdict = scene.ReconcileAndWrite(3);
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_THAT(Deleted(verdict), IsEmpty());

  scene.Remove("mnist-worker-2");
  scene.job.spec.replicas[kWorker].replicas = 3;
  verdict = scene.ReconcileAndWrite(4);
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-1", "mnist-worker-2"));
  EXPECT_THAT(verdict.create_services, SizeIs(2));
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).restarts, 2);
}

// A completed index is recorded even if the same reconcile deletes its pod because of a scale-down.
TEST(Scale, RemembersWhatWasDone) {
  Scene scene(StartedJob({{kChief}, {kWorker, 2}}));
  scene.Put(Running("mnist-worker-0"));
  scene.Put(Exited("mnist-worker-1", 0));
  scene.job.spec.replicas[kWorker].replicas = 1;
  Verdict verdict = scene.ReconcileAndWrite(1);
  EXPECT_THAT(Deleted(verdict), ElementsAre("mnist-worker-1"));
  EXPECT_THAT(Reasons(verdict), ElementsAre("ExitedWithCode"));
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).completed_indexes, "1");
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).succeeded, 0);
  scene.Remove("mnist-worker-1");
  scene.job.spec.replicas[kWorker].replicas = 2;
  verdict = scene.ReconcileAndWrite(2);
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-chief-0"));
  EXPECT_EQ(verdict.status.replica_statuses.at(kWorker).succeeded, 1);
}

// A pod is deleted, regardless of its labels, if its type is not in the spec, its index is beyond
// the slots, or its name is not that of a slot.
TEST(Scale, DeletesStrays) {
  Scene scene(StartedJob({{kWorker, 1}}));
  scene.Put(Running("mnist-worker-0"));
  scene.Put(Running("mnist-ps-0"));
  scene.Put(Exited("mnist-worker-2147483647", 1));
  objects::Pod second = Running("somebody");
  second.metadata.labels = {{"training.kubeflow.org/replica-type", "worker"},
                            {"training.kubeflow.org/replica-index", "0"}};
  scene.Put(second);
  const Verdict verdict = scene.ReconcileAndWrite(1);
  EXPECT_THAT(Deleted(verdict), ElementsAre("mnist-ps-0", "mnist-worker-2147483647", "somebody"));
  EXPECT_THAT(Created(verdict), IsEmpty());
  EXPECT_EQ(Conditions(verdict.status), "Created Running");
}

// A pod of another owner blocks only the index whose name it has. There is one event, and the
// creation is retried two seconds after each attempt.
TEST(TakenNames, BlockOneIndex) {
  Scene scene(StartedJob({{kWorker, 3, kOnFailure}}));
  scene.Put(Running("mnist-worker-0"));
  scene.history.blocked_pods["mnist-worker-1"] = {"ReplicaSet web-1", "stranger", Steady(10)};
  Verdict verdict = scene.ReconcileAndWrite(11);
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-2"));
  EXPECT_THAT(Waiting(verdict), ElementsAre("mnist-worker-1"));
  EXPECT_EQ(verdict.requeue_after, Duration(1s));
  EXPECT_EQ(Conditions(verdict.status), "Created Running");
  ASSERT_THAT(Reasons(verdict), ElementsAre("PodNameTaken"));
  EXPECT_TRUE(verdict.events[0].standing);
  scene.history.reported.insert(verdict.events[0].cause);
  scene.Put(Running("mnist-worker-2"));
  verdict = scene.ReconcileAndWrite(12);
  EXPECT_THAT(Created(verdict), ElementsAre("mnist-worker-1"));
  EXPECT_THAT(verdict.events, IsEmpty());
  EXPECT_EQ(verdict.requeue_after, Duration(2s));
}

// A blocked name is ignored once the job's own pod or service has that name.
TEST(TakenNames, AreForgottenOnceOurs) {
  Scene scene(StartedJob({{kWorker, 1, kOnFailure}}));
  scene.history.blocked_pods["mnist-worker-0"] = {"nobody", "stranger", Steady(0)};
  scene.history.blocked_services["mnist-worker-0"] = {"nobody", "stranger", Steady(0)};
  scene.Put(Running("mnist-worker-0"));
  const Verdict verdict = scene.ReconcileAndWrite(1);
  EXPECT_THAT(verdict.events, IsEmpty());
  EXPECT_EQ(verdict.requeue_after, std::nullopt);
}

// A job becomes Running again after a restart, even if the name of the restarted pod now belongs to
// an object of another owner.
TEST(TakenNames, DoNotHoldRunningUp) {
  Scene scene(StartedJob({{kWorker, 2, kOnFailure}}));
  scene.Put(Running("mnist-worker-0"));
  scene.Put(Exited("mnist-worker-1", 1));
  scene.ReconcileAndWrite(1);
  scene.Remove("mnist-worker-1");
  scene.history.blocked_pods["mnist-worker-1"] = {"nobody", "stranger", Steady(2)};
  EXPECT_EQ(Conditions(scene.ReconcileAndWrite(3).status), "Created Running");
  const api::TFJobStatus status = scene.job.status;
  EXPECT_EQ(scene.ReconcileAndWrite(4).status, status);
}

// If a pod on a lost node still exists a minute after its grace period, it is reported, or deleted
// if the job requests this.
TEST(LostNodes, HoldPods) {
  Scene scene(StartedJob({{kWorker, 1, kOnFailure}}));
  scene.Put(Terminating(Running("mnist-worker-0"), 0, 30));
  EXPECT_EQ(scene.ReconcileAndWrite(10).requeue_after, std::nullopt);
  scene.snapshot.lost_nodes = {"node-1"};
  EXPECT_EQ(scene.ReconcileAndWrite(10).requeue_after, Duration(80s));
  Verdict verdict = scene.ReconcileAndWrite(90);
  EXPECT_THAT(Reasons(verdict), ElementsAre("PodOnLostNode"));
  EXPECT_THAT(Deleted(verdict), IsEmpty());

  scene.job.metadata.annotations["tfjob.dev/force-delete-lost-pods"] = "true";
  verdict = scene.ReconcileAndWrite(90);
  EXPECT_THAT(verdict.delete_pods, ElementsAre(PodToDelete{"mnist-worker-0", "uid-mnist-worker-0",
                                                           0, DeleteReason::kLostNode}));
  scene.snapshot.lost_nodes = {"node-2"};
  EXPECT_THAT(Deleted(scene.ReconcileAndWrite(90)), IsEmpty());
}

// A service with the job's labels but no controller is adopted. While a service is terminating, no
// other is created in its place. A service of another owner blocks only its own name, not the other
// services.
TEST(Services, AreCreatedOrAdopted) {
  Scene scene(StartedJob({{kWorker, 4}}), false);
  objects::Service terminating = MakeService("mnist-worker-1");
  terminating.metadata.deletion_timestamp = At(1);
  scene.snapshot.services = {std::make_shared<const objects::Service>(terminating)};
  scene.snapshot.orphan_services = {
      std::make_shared<const objects::Service>(MakeService("mnist-worker-0")),
      std::make_shared<const objects::Service>(MakeService("mnist-ps-0"))};
  scene.history.blocked_services["mnist-worker-2"] = {"nobody", "stranger", Steady(0)};
  const Verdict verdict = scene.ReconcileAndWrite(1);
  EXPECT_THAT(verdict.adopt_services,
              ElementsAre(ServiceRef{"mnist-worker-0", "service-uid-mnist-worker-0"}));
  EXPECT_THAT(verdict.create_services,
              ElementsAre(ServiceToCreate{{kWorker, 3}, "mnist-worker-3"}));
  EXPECT_THAT(verdict.delete_services, IsEmpty());
  EXPECT_THAT(Created(verdict), SizeIs(4));
  EXPECT_THAT(Reasons(verdict), ElementsAre("ServiceNameTaken"));
}

// A pod that makes no progress is reported once per cause.
TEST(PodWarnings, NameTheReason) {
  Scene scene(StartedJob({{kWorker, 4, kOnFailure}}));
  objects::Pod pulling = MakePod("mnist-worker-0", PodPhase::kPending);
  pulling.containers[0].reason = "ImagePullBackOff";
  pulling.containers[0].message = "Back-off pulling image";
  objects::Pod crashing = RestartedTimes(Exited("mnist-worker-1", 1), 3);
  crashing.phase = PodPhase::kRunning;
  crashing.containers[0].reason = "Error";
  objects::Pod unschedulable = MakePod("mnist-worker-2", PodPhase::kPending);
  unschedulable.containers.clear();
  unschedulable.conditions = {{"PodScheduled", "False", "Unschedulable", "0/1 nodes", At(0)}};
  objects::Pod starting = MakePod("mnist-worker-3", PodPhase::kPending);
  starting.containers[0].reason = "ContainerCreating";
  for (const objects::Pod& pod : {pulling, crashing, unschedulable, starting}) scene.Put(pod);
  const Verdict verdict = scene.ReconcileAndWrite(1);
  EXPECT_THAT(Reasons(verdict), ElementsAre("ImagePullBackOff", "Error", "Unschedulable"));
  EXPECT_EQ(verdict.events[1].message,
            "Error pod mnist-worker-1 container tensorflow exitCode: 1 terminated message: ");
  EXPECT_EQ(verdict.events[2].message, "Error pod mnist-worker-2 condition message: 0/1 nodes");
  for (const JobEvent& event : verdict.events) {
    EXPECT_TRUE(event.standing);
    scene.history.reported.insert(event.cause);
  }
  EXPECT_THAT(scene.ReconcileAndWrite(2).events, IsEmpty());
}

}  // namespace
}  // namespace tfjob::policy
