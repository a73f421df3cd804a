// Tests scale, suspend, resume and restart: what they write to the server and what they print.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/cli/verbs/restart.h"
#include "operator/cli/verbs/scale.h"
#include "operator/cli/verbs/testing.h"
#include "operator/cli/verbs/verbs.h"
#include "operator/client/faults.h"

namespace tfjob::cli {
namespace {

using objects::Kind;
using testing::Conditions;

class ChangeTest : public ::testing::Test {
 protected:
  testing::FakeCluster& cluster() { return world_.cluster; }
  Json Spec(const std::string& job) { return cluster().Get(Kind::kTFJob, job)["spec"]; }
  int CallScale(const std::vector<std::string>& replicas, const std::string& name = "mnist") {
    const auto wanted = ParseScale(replicas);
    EXPECT_TRUE(wanted.ok()) << wanted.status();
    return Scale({name, *wanted}, world_.context);
  }
  int CallRestart(const std::vector<std::string>& replicas) {
    const auto choice = ReplicaChoice::Parse(replicas);
    EXPECT_TRUE(choice.ok()) << choice.status();
    return Restart({{"mnist"}, *choice}, world_.context);
  }
  bool Terminating(const std::string& pod) {
    return cluster().Get(Kind::kPod, pod)["metadata"].contains("deletionTimestamp");
  }

  testing::World world_;
};

TEST_F(ChangeTest, ScaleChangesReplicasAlone) {
  cluster().CreateJob("mnist", "{PS: {replicas: 1}, Worker: {replicas: 2}}");
  EXPECT_EQ(CallScale({"worker=3", "ps=2"}), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "tfjob.kubeflow.org/mnist scaled: ps 1 to 2, worker 2 to 3\n");
  EXPECT_NE(world_.Err().find("keep the TF_CONFIG"), std::string::npos);
  EXPECT_EQ(Spec("mnist")["tfReplicaSpecs"]["Worker"]["replicas"], 3);
  EXPECT_EQ(Spec("mnist")["tfReplicaSpecs"]["PS"]["replicas"], 2);
  EXPECT_TRUE(Spec("mnist")["tfReplicaSpecs"]["Worker"].contains("template"));
}

TEST_F(ChangeTest, ScaleFindsKeysInOtherLetters) {
  cluster().CreateJob("mnist", "{worker: {}}");
  EXPECT_EQ(CallScale({"2"}), view::kSucceeded);
  EXPECT_EQ(Spec("mnist")["tfReplicaSpecs"]["worker"]["replicas"], 2);
  EXPECT_EQ(CallScale({"2"}), view::kSucceeded);
  EXPECT_TRUE(world_.Out().ends_with("tfjob.kubeflow.org/mnist unchanged\n"));
}

TEST_F(ChangeTest, ScaleRefusesWhatTheDoorWouldRefuse) {
  const std::string name(54, 'a');
  cluster().CreateJob(name, "{Worker: {}}");
  EXPECT_EQ(CallScale({"10"}, name), view::kSucceeded);
  EXPECT_EQ(CallScale({"11"}, name), view::kBadInput);
  EXPECT_NE(world_.Err().find("would have a name of 64 characters"), std::string::npos);
  EXPECT_EQ(CallScale({"ps=1"}, name), view::kFailed);
  EXPECT_EQ(world_.Err(),
            StrCat("tfjob: ns/", name, ": it has no replicas of type PS, only Worker\n"));
}

TEST_F(ChangeTest, ScaleReadsNumbersByType) {
  EXPECT_EQ(ParseScale({"worker=3", "PS=0"})->size(), 2u);
  EXPECT_EQ(ParseScale({"4"})->at(api::ReplicaType::kWorker), 4);
  for (const char* text : {"", "worker", "worker=", "worker=-1", "worker=3x", "wroker=3", "=3"}) {
    EXPECT_FALSE(ParseScale({text}).ok()) << text;
  }
  EXPECT_FALSE(ParseScale({"worker=1", "Worker=2"}).ok());
}

TEST_F(ChangeTest, AChangeOfSomebodyElseIsReadAgain) {
  cluster().CreateJob("mnist", "{Worker: {replicas: 2}}");
  client::FaultyClient faulty(cluster().store());
  cluster().Serve(faulty);
  client::Fault other;
  other.matches = [](const client::Call& call) { return call.verb == client::Verb::kPatch; };
  other.before_call = [this] {
    const auto patched = cluster().store().Patch({Kind::kTFJob, "ns", "mnist"},
                                                 {{"metadata", {{"labels", {{"team", "a"}}}}}});
    EXPECT_TRUE(patched.ok());
  };
  faulty.Inject(other);
  EXPECT_EQ(CallScale({"3"}), view::kSucceeded) << world_.Err();
  EXPECT_EQ(Spec("mnist")["tfReplicaSpecs"]["Worker"]["replicas"], 3);
  EXPECT_EQ(cluster().Get(Kind::kTFJob, "mnist")["metadata"]["labels"]["team"], "a");
}

TEST_F(ChangeTest, SuspendAndResumeWriteOneField) {
  cluster().CreateJob("mnist", "{Worker: {}}", "{}", "{backoffLimit: 3}");
  EXPECT_EQ(world_.Call(MakeSuspendVerb(), {"mnist"}), view::kSucceeded);
  EXPECT_EQ(Spec("mnist")["runPolicy"], (Json{{"backoffLimit", 3}, {"suspend", true}}));
  EXPECT_EQ(world_.Call(MakeSuspendVerb(), {"mnist"}), view::kSucceeded);
  EXPECT_EQ(world_.Call(MakeResumeVerb(), {"mnist"}), view::kSucceeded);
  EXPECT_EQ(Spec("mnist")["runPolicy"]["suspend"], false);
  EXPECT_EQ(world_.Call(MakeResumeVerb(), {"mnist", "nobody"}), view::kFailed);
  EXPECT_EQ(world_.Out(),
            "tfjob.kubeflow.org/mnist suspended\n"
            "tfjob.kubeflow.org/mnist already suspended\n"
            "tfjob.kubeflow.org/mnist resumed\n"
            "tfjob.kubeflow.org/mnist already not suspended\n");
}

TEST_F(ChangeTest, NothingIsChangedOfAJobThatHasEnded) {
  cluster().CreateJob("mnist", "{Worker: {}}", "{" + Conditions({{"Succeeded", "True"}}) + "}");
  const Json before = cluster().Get(Kind::kTFJob, "mnist");
  EXPECT_EQ(CallScale({"3"}), view::kFailed);
  EXPECT_EQ(world_.Call(MakeSuspendVerb(), {"mnist"}), view::kFailed);
  EXPECT_EQ(CallRestart({}), view::kFailed);
  const std::string error = world_.Err();
  EXPECT_NE(error.find("tfjob: ns/mnist: it has succeeded, and a job that has ended never runs "
                       "again, so suspend would have no effect; delete it and create it again\n"),
            std::string::npos)
      << error;
  EXPECT_EQ(cluster().Get(Kind::kTFJob, "mnist"), before);
}

TEST_F(ChangeTest, RestartDeletesThePodsThatItSaw) {
  cluster().CreateJob("mnist", "{PS: {}, Worker: {replicas: 3}}",
                      "{replicaStatuses: {Worker: {completedIndexes: \"2\"}}}");
  for (int i = 0; i < 3; ++i) cluster().CreatePod("mnist", "worker", i, "{phase: Running}", "node");
  cluster().CreatePod("mnist", "ps", 0, "{phase: Running}", "node");
  EXPECT_EQ(CallRestart({"worker/1"}), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "pod/mnist-worker-1 restarted\n");
  EXPECT_TRUE(Terminating("mnist-worker-1"));
  EXPECT_FALSE(Terminating("mnist-worker-0"));
  EXPECT_EQ(CallRestart({}), view::kSucceeded);
  EXPECT_EQ(world_.Out(),
            "pod/mnist-ps-0 restarted\n"
            "pod/mnist-worker-0 restarted\n"
            "pod/mnist-worker-1 is already terminating\n"
            "pod/mnist-worker-2 has completed and is left alone\n");
  EXPECT_FALSE(Terminating("mnist-worker-2"));
}

TEST_F(ChangeTest, APodThatWasReplacedMeanwhileIsLeft) {
  cluster().CreateJob("mnist", "{Worker: {}}");
  cluster().CreatePod("mnist", "worker", 0, "{phase: Running}");
  client::FaultyClient faulty(cluster().store());
  cluster().Serve(faulty);
  client::Fault other;
  other.matches = [](const client::Call& call) { return call.verb == client::Verb::kDelete; };
  other.before_call = [this] {
    EXPECT_TRUE(cluster().store().Delete({Kind::kPod, "ns", "mnist-worker-0"}, {}).ok());
    cluster().CreatePod("mnist", "worker", 0, "{phase: Pending}");
  };
  faulty.Inject(other);
  EXPECT_EQ(CallRestart({}), view::kSucceeded) << world_.Err();
  EXPECT_FALSE(Terminating("mnist-worker-0"));
}

TEST_F(ChangeTest, RestartSaysWhyItCannot) {
  cluster().CreateJob("mnist", "{Worker: {replicas: 2}}");
  EXPECT_EQ(CallRestart({}), view::kFailed);
  EXPECT_EQ(world_.Err(),
            "tfjob: ns/mnist: there is no pod to restart; tfjob describe mnist shows the job's "
            "pods\n");
  EXPECT_EQ(CallRestart({"worker/2"}), view::kFailed);
  EXPECT_EQ(world_.Err(), "tfjob: ns/mnist: it has no replica worker/2, only worker 2\n");
  EXPECT_EQ(CallRestart({"ps"}), view::kFailed);
  EXPECT_EQ(world_.Call(MakeSuspendVerb(), {"mnist"}), view::kSucceeded);
  world_.Err();
  EXPECT_EQ(CallRestart({}), view::kFailed);
  EXPECT_EQ(world_.Err(),
            "tfjob: ns/mnist: it is suspended, so none of its pods run; tfjob resume mnist starts "
            "it again\n");
}

TEST(ReplicaChoiceTest, ReadsTypesAndIndexes) {
  const auto choice = ReplicaChoice::Parse({"Worker/1", "ps"});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_TRUE(choice->Contains({api::ReplicaType::kWorker, 1}));
  EXPECT_FALSE(choice->Contains({api::ReplicaType::kWorker, 0}));
  EXPECT_TRUE(choice->Contains({api::ReplicaType::kPS, 7}));
  EXPECT_FALSE(choice->Contains({api::ReplicaType::kChief, 0}));
  for (const char* text : {"", "wroker", "worker/", "worker/x", "worker/-1", "worker/1x"}) {
    EXPECT_FALSE(ReplicaChoice::Parse({text}).ok()) << text;
  }
}

}  // namespace
}  // namespace tfjob::cli
