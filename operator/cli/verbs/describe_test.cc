// Tests what `describe` prints, including the sentence that explains why a job is waiting.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/cli/verbs/testing.h"
#include "operator/cli/verbs/verbs.h"
#include "operator/cli/verbs/why.h"
#include "operator/client/faults.h"
#include "operator/objects/pod.h"

namespace tfjob::cli {
namespace {

using objects::Kind;
using testing::Conditions;

constexpr char kRunning[] = "{phase: Running}";
constexpr char kUnschedulable[] =
    "{phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable, "
    "message: \"0/3 nodes are available: 3 Insufficient cpu.\"}]}";

TEST(DescribeTest, ShowsAJobWhole) {
  testing::World world;
  testing::FakeCluster& cluster = world.cluster;
  cluster.CreateJob("mnist", "{Chief: {}, Worker: {replicas: 2, restartPolicy: OnFailure}}",
                    "{" + Conditions({{"Created", "True"}, {"Running", "True"}}) +
                        ", startTime: \"2026-11-21T09:00:10Z\", replicaStatuses: {Chief: {active: "
                        "1}, Worker: {active: 1, restarts: 2}}}",
                    "{backoffLimit: 5, activeDeadlineSeconds: 3600}");
  cluster.CreatePod("mnist", "chief", 0, kRunning, "node-a");
  cluster.CreatePod("mnist", "worker", 0,
                    "{phase: Running, containerStatuses: [{name: tensorflow, restartCount: 2, "
                    "state: {running: {startedAt: \"2026-11-21T09:01:00Z\"}}, lastState: "
                    "{terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "
                    "\"2026-11-21T09:00:50Z\"}}}]}",
                    "node-b");
  cluster.CreatePod("mnist", "worker", 1, kUnschedulable);
  cluster.CreateEvent(Kind::kTFJob, "mnist", "Normal", "SuccessfulCreatePod",
                      "Created pod: mnist-chief-0");
  cluster.clock().Advance(60s);
  cluster.CreateEvent(Kind::kPod, "mnist-worker-1", "Warning", "FailedScheduling",
                      "0/3 nodes are available: 3 Insufficient cpu.", 3);
  cluster.clock().Advance(60s);
  EXPECT_EQ(world.Call(MakeDescribeVerb(), {"mnist"}), view::kSucceeded) << world.Err();
  EXPECT_EQ(
      world.Out(),
      "Name:        mnist\n"
      "Namespace:   ns\n"
      "State:       Running\n"
      "Waits:       mnist-worker-1 has no node: 0/3 nodes are available: 3 Insufficient cpu.\n"
      "Created:     2026-11-21T09:00:00Z (2m ago)\n"
      "Started:     2026-11-21T09:00:10Z (110s ago)\n"
      "Backoff:     2 of 5 restarts used\n"
      "Deadline:    3600 s after its start (58m left)\n"
      "Replicas:\n"
      "  TYPE     WANTED   ACTIVE   SUCCEEDED   FAILED   RESTARTS   POLICY      COMPLETED\n"
      "  Chief    1        1        0           0        0          Never       <none>\n"
      "  Worker   2        1        0           0        2          OnFailure   <none>\n"
      "Pods:\n"
      "  NAME             PHASE     RESTARTS   EXIT CODE   NODE     AGE   DETAIL\n"
      "  mnist-chief-0    Running   0          <none>      node-a   2m    <none>\n"
      "  mnist-worker-0   Running   2          137         node-b   2m    <none>\n"
      "  mnist-worker-1   Pending   0          <none>      <none>   2m    Unschedulable\n"
      "Conditions:\n"
      "  TYPE      STATUS   REASON         SINCE   MESSAGE\n"
      "  Created   True     TFJobCreated   2m      TFJob ns/mnist is Created.\n"
      "  Running   True     TFJobRunning   2m      TFJob ns/mnist is Running.\n"
      "Events:\n"
      "  AGE        TYPE      REASON                OBJECT               MESSAGE\n"
      "  2m         Normal    SuccessfulCreatePod   TFJob mnist          Created pod: "
      "mnist-chief-0\n"
      "  60s (x3)   Warning   FailedScheduling      Pod mnist-worker-1   0/3 nodes are available: "
      "3 "
      "Insufficient cpu.\n");
}

TEST(DescribeTest, ADeadlineThatNoClockReachesIsYearsAway) {
  testing::World world;
  world.cluster.CreateJob(
      "mnist", "{Worker: {}}",
      "{" + Conditions({{"Running", "True"}}) + ", startTime: \"2026-11-21T09:00:00Z\"}",
      "{activeDeadlineSeconds: 9223372036854775807}");
  EXPECT_EQ(world.Call(MakeDescribeVerb(), {"mnist"}), view::kSucceeded) << world.Err();
  EXPECT_NE(world.Out().find("Deadline:    9223372036854775807 s after its start (100y left)\n"),
            std::string::npos)
      << world.Out();
}

TEST(DescribeTest, EventsThatMayNotBeReadAreNoError) {
  testing::World world;
  world.cluster.CreateJob("mnist", "{Worker: {}}");
  client::FaultyClient faulty(world.cluster.store());
  faulty.Inject({.matches = [](const client::Call& call) { return call.key.kind == Kind::kEvent; },
                 .error = PermissionDenied("events is forbidden")});
  world.cluster.Serve(faulty);
  EXPECT_EQ(world.Call(MakeDescribeVerb(), {"mnist", "nobody"}), view::kFailed);
  const std::string out = world.Out();
  EXPECT_NE(
      out.find("Events:      <unknown> (https://test:6443 (context dev) refuses access to the "
               "events of namespace ns: events is forbidden"),
      std::string::npos)
      << out;
  EXPECT_NE(world.Err().find("there is no TFJob ns/nobody"), std::string::npos);
}

class WhyTest : public ::testing::Test {
 protected:
  testing::FakeCluster& cluster() { return world_.cluster; }
  void CreateJob(
      const std::string& condition = "Created", const std::string& policy = "{}",
      const std::string& replicas = "{Worker: {replicas: 2, restartPolicy: OnFailure}}") {
    const std::string status =
        condition.empty() ? "{}" : "{" + Conditions({{condition, "True"}}) + "}";
    cluster().CreateJob("mnist", replicas, status, policy);
    cluster().clock().Advance(60s);
  }
  std::string Why() {
    const auto job = GetJob(cluster(), "mnist");
    EXPECT_TRUE(job.ok()) << job.status();
    const auto facts = CollectFacts(world_.context, *job);
    EXPECT_TRUE(facts.ok()) << facts.status();
    return WhyItWaits(*facts);
  }

  testing::World world_;
};

TEST_F(WhyTest, NothingIsAmissWhenAllPodsRun) {
  CreateJob("Running");
  cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
  cluster().CreatePod("mnist", "worker", 1, kRunning, "node");
  EXPECT_EQ(Why(), "");
}

TEST_F(WhyTest, AJobThatHasEndedWaitsForNothing) {
  CreateJob("Failed");
  EXPECT_EQ(Why(), "");
}

TEST_F(WhyTest, NoOperatorHasReconciledIt) {
  CreateJob("");
  EXPECT_EQ(
      Why(),
      "No operator has reconciled it for 60s: is tfjob-operator running, and does it watch the "
      "namespace ns?");
}

TEST_F(WhyTest, ItIsSuspended) {
  CreateJob("Suspended", "{suspend: true}");
  EXPECT_EQ(Why(), "It is suspended (spec.runPolicy.suspend); tfjob resume mnist starts it.");
  ASSERT_TRUE(
      cluster()
          .store()
          .Patch({Kind::kTFJob, "ns", "mnist"},
                 *ParseJson(R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}}})", ""))
          .ok());
  EXPECT_EQ(Why(), "It is suspended until Kueue admits it from the queue \"q\".");
}

TEST_F(WhyTest, AnotherControllerHasIt) {
  CreateJob("", "{managedBy: kueue.x-k8s.io/multikueue}");
  EXPECT_EQ(
      Why(),
      "Another controller manages it (spec.runPolicy.managedBy: \"kueue.x-k8s.io/multikueue\"), so "
      "the operator ignores it.");
}

TEST_F(WhyTest, AQuotaRefusesItsPods) {
  CreateJob();
  cluster().CreateEvent(Kind::kTFJob, "mnist", "Warning", "FailedCreatePod",
                        "Error creating: pods \"mnist-worker-0\" is forbidden: exceeded quota: q");
  EXPECT_EQ(Why(),
            "Its pods cannot be created: Error creating: pods \"mnist-worker-0\" is forbidden: "
            "exceeded quota: q. The operator retries automatically.");
  // A pod that was created after the event shows that the event is outdated.
  cluster().clock().Advance(1s);
  cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
  EXPECT_EQ(Why(), "There is no pod mnist-worker-1 yet: the operator has not created it.");
}

TEST_F(WhyTest, ItsPodGroupIsRefused) {
  CreateJob();
  ASSERT_TRUE(cluster()
                  .store()
                  .Patch({Kind::kTFJob, "ns", "mnist"},
                         *ParseJson(R"({"metadata":{"annotations":{"tfjob.dev/gang-scheduler":)"
                                    R"("volcano"}}})",
                                    ""))
                  .ok());
  cluster().CreateEvent(Kind::kTFJob, "mnist", "Warning", "FailedCreatePodGroup",
                        "Error creating: the server does not serve this path");
  EXPECT_EQ(Why(),
            "Its pod group cannot be created: Error creating: the server does not serve this path. "
            "The operator retries automatically.");
}

TEST_F(WhyTest, ItsNetworkPolicyIsRefused) {
  CreateJob();
  const Json asks = {{"metadata", {{"annotations", {{"tfjob.dev/network-policy", "true"}}}}}};
  ASSERT_TRUE(cluster().store().Patch({Kind::kTFJob, "ns", "mnist"}, asks).ok());
  cluster().CreateEvent(Kind::kTFJob, "mnist", "Warning", "FailedCreateNetworkPolicy",
                        "Error creating: networkpolicies is forbidden");
  EXPECT_EQ(Why(),
            "Its NetworkPolicy cannot be created: Error creating: networkpolicies is forbidden. "
            "The operator retries automatically.");
}

TEST_F(WhyTest, ItsPodGroupWaits) {
  CreateJob();
  cluster().CreateEvent(Kind::kTFJob, "mnist", "Normal", "SuccessfulCreatePodGroup",
                        "Created pod group: mnist");
  EXPECT_EQ(Why(),
            "There is no pod mnist-worker-0 and mnist-worker-1 yet: its pod group mnist may wait "
            "for its queue.");
}

TEST_F(WhyTest, PodsHaveNoNode) {
  CreateJob("Created", "{}", "{Worker: {replicas: 5}}");
  for (int i = 0; i < 5; ++i) cluster().CreatePod("mnist", "worker", i, kUnschedulable);
  EXPECT_EQ(Why(),
            "mnist-worker-0, mnist-worker-1, mnist-worker-2 and 2 more have no node: 0/3 nodes are "
            "available: 3 Insufficient cpu.");
}

TEST_F(WhyTest, NoSchedulerHasLookedAtThePods) {
  CreateJob();
  cluster().CreatePod("mnist", "worker", 0, "{phase: Pending}");
  cluster().CreatePod("mnist", "worker", 1, "{phase: Pending}");
  EXPECT_EQ(Why(),
            "mnist-worker-0 and mnist-worker-1 have no node yet, and no scheduler has reported "
            "why.");
}

TEST_F(WhyTest, AContainerWaits) {
  CreateJob();
  cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
  cluster().CreatePod("mnist", "worker", 1,
                      "{phase: Pending, containerStatuses: [{name: tensorflow, state: {waiting: "
                      "{reason: ImagePullBackOff, message: \"Back-off pulling image x\"}}}]}",
                      "node");
  EXPECT_EQ(Why(),
            "The container tensorflow of mnist-worker-1 is waiting: ImagePullBackOff: Back-off "
            "pulling image x.");
}

TEST_F(WhyTest, AContainerIsInBackoffUntil) {
  CreateJob("Running");
  cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
  cluster().CreatePod(
      "mnist", "worker", 1,
      "{phase: Running, containerStatuses: [{name: tensorflow, restartCount: 4, state: {waiting: "
      "{reason: CrashLoopBackOff, message: \"back-off 1m20s restarting failed container=x\"}}, "
      "lastState: {terminated: {exitCode: 1, reason: Error, finishedAt: "
      "\"2026-11-21T09:00:30Z\"}}}]}",
      "node");
  EXPECT_EQ(Why(),
            "The container tensorflow of mnist-worker-1 is waiting: CrashLoopBackOff: back-off "
            "1m20s restarting failed container=x; it will be started again at "
            "2026-11-21T09:01:50Z.");
}

TEST_F(WhyTest, AContainerInBackoffHasSaidWhy) {
  CreateJob("Running");
  cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
  cluster().CreatePod(
      "mnist", "worker", 1,
      "{phase: Running, containerStatuses: [{name: tensorflow, restartCount: 4, state: {waiting: "
      "{reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, reason: Error, message: "
      "\"strategy: unknown \\e[31m\"}}}]}",
      "node");
  EXPECT_EQ(
      Why(),
      "The container tensorflow of mnist-worker-1 is waiting: CrashLoopBackOff; it last said: "
      "strategy: unknown [31m.");
}

TEST_F(WhyTest, AVolumeCannotBeMounted) {
  CreateJob("Created", "{}", "{Worker: {}}");
  cluster().CreatePod("mnist", "worker", 0,
                      "{phase: Pending, containerStatuses: [{name: tensorflow, state: {waiting: "
                      "{reason: ContainerCreating}}}]}",
                      "node");
  cluster().CreateEvent(Kind::kPod, "mnist-worker-0", "Warning", "FailedMount",
                        "configmap \"settings\" not found");
  EXPECT_EQ(Why(),
            "The container tensorflow of mnist-worker-0 is waiting: FailedMount: configmap "
            "\"settings\" not found.");
}

TEST_F(WhyTest, ThePodBeforeItIsNotGoneYet) {
  CreateJob("Running");
  cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
  cluster().CreatePod("mnist", "worker", 1, kRunning, "node");
  ASSERT_TRUE(cluster().store().Delete({Kind::kPod, "ns", "mnist-worker-1"}, {}).ok());
  EXPECT_EQ(Why(), "There is no pod mnist-worker-1 yet: the previous pod still exists.");
}

TEST_F(WhyTest, AReplicaIsCreatedAgainWithADelay) {
  CreateJob("Restarting");
  cluster().CreatePod("mnist", "worker", 0, kRunning, "node");
  EXPECT_EQ(
      Why(),
      "There is no pod mnist-worker-1 yet: after repeated failures a replica is created again "
      "with a growing delay, at most 5m.");
}

TEST_F(WhyTest, ItsSpecCannotBeRead) {
  cluster().Create(Kind::kTFJob,
                   "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: mnist, namespace: "
                   "ns}, spec: {tfReplicaSpecs: {Wroker: {}}}}");
  EXPECT_TRUE(Why().starts_with("Its spec cannot be read, so it cannot run: ")) << Why();
}

TEST(DescribeTest, MessagesCannotSteerTheTerminalOrForgeLines) {
  testing::World world;
  testing::FakeCluster& cluster = world.cluster;
  cluster.CreateJob("mnist", "{Chief: {}}", "{" + Conditions({{"Created", "True"}}) + "}");
  cluster.CreatePod("mnist", "chief", 0,
                    "{phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: "
                    "Unschedulable, message: \"no node\\e[2J\\nState: Succeeded\"}]}");
  cluster.CreateEvent(Kind::kPod, "mnist-chief-0", "Warning", "FailedScheduling",
                      "\x1b]52;c;cm0gLXJmCg==\a\xc2\x9b"
                      "2Jdone\nforged");
  EXPECT_EQ(world.Call(MakeDescribeVerb(), {"mnist"}), view::kSucceeded) << world.Err();
  const std::string out = world.Out();
  EXPECT_EQ(out.find_first_of("\x1b\x07\r"), std::string::npos) << out;
  EXPECT_NE(out.find("no node\\u001b[2J\\u000aState: Succeeded.\n"), std::string::npos) << out;
  EXPECT_NE(out.find("\\u001b]52;c;cm0gLXJmCg==\\u0007\\u009b2Jdone\\u000aforged\n"),
            std::string::npos)
      << out;
}

}  // namespace
}  // namespace tfjob::cli
