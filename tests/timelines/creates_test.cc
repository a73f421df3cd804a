// Tests the creation of pods and services in cases that a timeline cannot express: a quota on the
// number of existing pods, a template that is always rejected, and a job that is deleted during one
// of its create calls (the test tries each call).
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/manifest/tfjob_json.h"
#include "operator/objects/pod.h"
#include "operator/policy/facts/network_policy.h"
#include "runtime/base/log.h"
#include "tests/timelines/world.h"

namespace tfjob::timelines {
namespace {

using client::Call;
using client::Verb;
using objects::Kind;

constexpr int kAlways = std::numeric_limits<int>::max() - 1;

Json Job(int ps, int workers) {
  const Json container = {{"name", "tensorflow"}, {"image", "trainer"}};
  const Json pod_template = {{"spec", {{"containers", Json::array({container})}}}};
  const auto replicas = [&](int count) {
    return Json{{"replicas", count}, {"restartPolicy", "OnFailure"}, {"template", pod_template}};
  };
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", {{"name", kJob}, {"namespace", kNamespace}}},
          {"spec", {{"tfReplicaSpecs", {{"PS", replicas(ps)}, {"Worker", replicas(workers)}}}}}};
}

bool IsCreate(const Call& call, Kind kind, const std::string& prefix = "") {
  return call.verb == Verb::kCreate && call.key.kind == kind && call.key.name.rfind(prefix, 0) == 0;
}

class CreatesTest : public ::testing::Test {
 protected:
  CreatesTest() {
    ConfigureLogging(LogLevel::kOff, LogFormat::kText);
    EXPECT_TRUE(world_.StartOperator().ok());
    Settle();
  }

  void Settle() {
    const Status status = world_.RunUntilIdle();
    ASSERT_TRUE(status.ok()) << status;
  }
  void Advance(Duration by) {
    const Status status = world_.Advance(by);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Apply(const Json& job) {
    ASSERT_TRUE(world_.server().Create(Kind::kTFJob, job).ok());
    Settle();
  }

  // Cuts the operator's watch of TFJobs.
  void CutJobs() { static_cast<store::Store&>(world_.server()).CutWatches(Kind::kTFJob); }

  // Returns the number of objects that are not terminating.
  size_t Count(Kind kind) {
    size_t count = 0;
    const std::vector<client::Object> objects = *world_.server().List(kind, kNamespace, {});
    for (const client::Object& object : objects) {
      count += client::MetadataOf(object).terminating() ? 0 : 1;
    }
    return count;
  }
  int CountCalls(Kind kind, const std::string& prefix = "") {
    const std::vector<Call> calls = world_.operator_client().Calls();
    return static_cast<int>(std::count_if(calls.begin(), calls.end(), [&](const Call& call) {
      return IsCreate(call, kind, prefix);
    }));
  }
  std::vector<std::string> Messages(const std::string& reason) {
    std::vector<std::string> messages;
    const std::vector<client::Object> events = *world_.server().List(Kind::kEvent, kNamespace, {});
    for (const client::Object& object : events) {
      const auto event = std::get<std::shared_ptr<const objects::CustomResource>>(object);
      if ((*event->object)["reason"] == reason) messages.push_back((*event->object)["message"]);
    }
    return messages;
  }
  api::Condition LastCondition() {
    const Json job = *world_.server().GetJson(World::KeyOf(Kind::kTFJob, kJob));
    return manifest::ParseTFJob(job)->status.conditions.back();
  }

  // Rejects further pods beyond `quota_`, each time with a slightly different message.
  void LimitPods() {
    client::Fault count;
    count.matches = [this](const Call& call) {
      is_full_ = IsCreate(call, Kind::kPod) && Count(Kind::kPod) >= quota_;
      return false;
    };
    world_.operator_client().Inject(std::move(count));
    for (int i = 0; i < 1000; ++i) {
      client::Fault fault;
      fault.matches = [this](const Call&) { return is_full_; };
      fault.nth = i + 1;
      fault.error = PermissionDenied("pods \"job-worker-", i,
                                     "\" is forbidden: exceeded quota: team, used: pods=", i);
      world_.operator_client().Inject(std::move(fault));
    }
  }

  World world_;
  size_t quota_ = 0;
  bool is_full_ = false;  // whether the current call exceeds the quota
};

// This test is not a timeline, because the job of a timeline always has the same name.
TEST_F(CreatesTest, AJobWhoseServicesWouldHaveTooLongNamesFailsWithoutAny) {
  Json job = Job(1, 11);
  job["metadata"]["name"] = std::string(54, 'j');  // "-worker-9" still fits, "-worker-10" does not
  Apply(job);
  EXPECT_EQ(Count(Kind::kPod), 0u);
  EXPECT_EQ(Count(Kind::kService), 0u);
  const auto key = World::KeyOf(Kind::kTFJob, std::string(54, 'j'));
  const api::Condition last =
      manifest::ParseTFJob(*world_.server().GetJson(key))->status.conditions.back();
  EXPECT_EQ(last.type, api::ConditionType::kFailed);
  EXPECT_EQ(last.reason, "TFJobFailedValidation");
  EXPECT_NE(last.message.find("metadata.name"), std::string::npos) << last.message;
  EXPECT_NE(last.message.find("63"), std::string::npos) << last.message;
}

TEST_F(CreatesTest, AllPodsComeWhenTheQuotaIsRaised) {
  quota_ = 5;
  LimitPods();
  Apply(Job(1, 19));
  EXPECT_EQ(Count(Kind::kPod), 5u);
  EXPECT_EQ(Count(Kind::kService), 20u);
  Advance(100ms);
  ASSERT_EQ(Messages("FailedCreatePod").size(), 1u);
  EXPECT_NE(Messages("FailedCreatePod")[0].find("exceeded quota: team"), std::string::npos);
  EXPECT_EQ(LastCondition().reason, "FailedCreatePod");
  EXPECT_NE(LastCondition().message.find("exceeded quota: team"), std::string::npos);
  quota_ = 12;
  Advance(2min);
  EXPECT_EQ(Count(Kind::kPod), 12u);
  EXPECT_EQ(LastCondition().reason, "FailedCreatePod");
  EXPECT_EQ(Messages("FailedCreatePod").size(), 2u);  // the second reports the missing pods
  quota_ = 100;
  Advance(2min);
  EXPECT_EQ(Count(Kind::kPod), 20u);
  EXPECT_EQ(LastCondition().reason, "TFJobCreated");
  EXPECT_EQ(Messages("FailedCreatePod").size(), 2u);
  const int calls = CountCalls(Kind::kPod);
  Advance(1h);
  EXPECT_EQ(CountCalls(Kind::kPod), calls);
}

TEST_F(CreatesTest, WordsThatChangeDoNotShortenTheBackOff) {
  LimitPods();
  Apply(Job(0, 100));
  Advance(1h);
  // The delays are 5 ms, 10 ms, … 2 min. The longest delay is reached after about 15 reconciles,
  // and then there are 30 reconciles per hour.
  EXPECT_GE(CountCalls(Kind::kPod), 8 * 30);
  EXPECT_LE(CountCalls(Kind::kPod), 8 * 50);
  EXPECT_EQ(Messages("FailedCreatePod").size(), 1u);
}

TEST_F(CreatesTest, ATemplateThatIsRefusedIsNotTriedForEveryReplica) {
  std::vector<Time> looks;
  client::Fault fault;
  fault.matches = [](const Call& call) { return IsCreate(call, Kind::kPod, "job-worker-"); };
  fault.times = kAlways;
  fault.error = InvalidArgument("Pod is invalid: spec.containers[0].image: Required value");
  fault.before_call = [&] {
    if (looks.empty() || looks.back() != world_.clock().Now()) {
      looks.push_back(world_.clock().Now());
    }
  };
  world_.operator_client().Inject(fault);
  Apply(Job(4, 300));
  EXPECT_EQ(Count(Kind::kPod), 4u);
  EXPECT_LE(CountCalls(Kind::kPod, "job-worker-"), 16);
  looks.clear();
  Advance(30min);
  ASSERT_GE(looks.size(), 10u);
  EXPECT_LE(looks.size(), 40u);
  EXPECT_LE(CountCalls(Kind::kPod, "job-worker-"), 16 * static_cast<int>(looks.size() + 1));
  EXPECT_GE(looks[5] - looks[4], 2 * (looks[3] - looks[2]));
  EXPECT_GE(looks.back() - looks[looks.size() - 2], 1min);
  const std::vector<std::string> messages = Messages("FailedCreatePod");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].find("Required value"), std::string::npos);
  // Now the server accepts the template.
  world_.operator_client().Clear();
  Advance(2min);
  EXPECT_EQ(Count(Kind::kPod), 304u);
}

TEST_F(CreatesTest, OneReplicaThatIsRefusedDoesNotHoldBackTheOthers) {
  client::Fault fault;
  fault.matches = [](const Call& call) { return IsCreate(call, Kind::kPod, "job-worker-0"); };
  fault.times = kAlways;
  fault.error = InvalidArgument("admission webhook denied the request");
  world_.operator_client().Inject(fault);
  Apply(Job(1, 100));
  Advance(1s);
  EXPECT_EQ(Count(Kind::kPod), 100u);
}

TEST_F(CreatesTest, AJobThatIsDeletedAmongItsCreatesLeavesNothing) {
  constexpr int kCreates = 2 * (1 + 9);
  for (int nth = 1; nth <= kCreates; ++nth) {
    for (const bool told_at_once : {false, true}) {
      const std::string where = StrCat("at create ", nth, told_at_once ? ", told at once" : "");
      World world;
      ASSERT_TRUE(world.StartOperator().ok());
      client::Fault fault;
      fault.matches = [](const Call& call) {
        return IsCreate(call, Kind::kPod) || IsCreate(call, Kind::kService);
      };
      fault.nth = nth;
      bool deleted = false;
      fault.before_call = [&] {
        deleted = world.Delete(Kind::kTFJob, kJob).ok();
        if (told_at_once) static_cast<store::Store&>(world.server()).Deliver();
      };
      world.operator_client().Inject(std::move(fault));
      ASSERT_TRUE(world.server().Create(Kind::kTFJob, Job(1, 9)).ok());
      ASSERT_TRUE(world.RunUntilIdle().ok()) << where;
      ASSERT_TRUE(world.Advance(1h).ok()) << where;
      ASSERT_TRUE(deleted) << where;
      EXPECT_EQ(world.server().List(Kind::kService, kNamespace, {})->size(), 0u) << where;
      const std::vector<client::Object> pods = *world.server().List(Kind::kPod, kNamespace, {});
      for (const client::Object& pod : pods) {
        const objects::ObjectMeta& metadata = client::MetadataOf(pod);
        EXPECT_TRUE(metadata.terminating()) << where << ": " << metadata.name;
        ASSERT_TRUE(world.Delete(Kind::kPod, metadata.name, 0).ok());
      }
      // Neither remaining objects nor the operator's memory may block the next job with the same
      // name.
      ASSERT_TRUE(world.server().Create(Kind::kTFJob, Job(1, 9)).ok());
      ASSERT_TRUE(world.Advance(1min).ok()) << where;
      EXPECT_EQ(world.server().List(Kind::kPod, kNamespace, {})->size(), 10u) << where;
      EXPECT_EQ(world.server().List(Kind::kService, kNamespace, {})->size(), 10u) << where;
    }
  }
}

TEST_F(CreatesTest, NothingMoreIsCreatedForAJobThatIsGone) {
  client::Fault fault;
  fault.matches = [](const Call& call) { return IsCreate(call, Kind::kPod); };
  fault.nth = 3;
  fault.before_call = [this] {
    EXPECT_TRUE(world_.Delete(Kind::kTFJob, kJob).ok());
    static_cast<store::Store&>(world_.server()).Deliver();
  };
  world_.operator_client().Inject(std::move(fault));
  Apply(Job(0, 200));
  Advance(1h);
  EXPECT_LE(CountCalls(Kind::kPod), 8);
  EXPECT_EQ(Count(Kind::kPod), 0u);
  EXPECT_EQ(Count(Kind::kService), 0u);
}

// The watch of TFJobs delivers nothing more, but the watches of pods and services do. If the
// operator did not read the job from the server, it would recreate the services as fast as the
// server deletes them.
TEST_F(CreatesTest, ServicesOfAJobThatIsGoneStayGone) {
  Apply(Job(1, 2));
  CutJobs();
  ASSERT_TRUE(world_.Delete(Kind::kTFJob, kJob).ok());
  Settle();
  EXPECT_EQ(Count(Kind::kService), 0u);
  EXPECT_EQ(CountCalls(Kind::kService), 3);
}

// A pod failed before its job was deleted. The status can no longer record this failure, so nothing
// may wait for the record.
TEST_F(CreatesTest, NothingWaitsForTheStatusOfAJobThatIsGone) {
  Apply(Job(0, 1));
  CutJobs();
  ASSERT_TRUE(
      world_
          .Report("job-worker-0", [](objects::Pod& pod) { pod.phase = objects::PodPhase::kFailed; })
          .ok());
  ASSERT_TRUE(world_.Delete(Kind::kPod, "job-worker-0", 0).ok());
  ASSERT_TRUE(world_.Delete(Kind::kTFJob, kJob).ok());
  Settle();
  EXPECT_EQ(CountCalls(Kind::kPod), 1);
}

// An old leader has not noticed that it has lost the lease, and has an outdated spec because its
// watch of TFJobs delivers nothing. It must not undo the new leader's change to the pod group.
TEST_F(CreatesTest, AnOldSpecChangesNoPodGroup) {
  Json job = Job(0, 1);
  job["metadata"]["annotations"] = {{"tfjob.dev/gang-scheduler", "scheduler-plugins"}};
  Apply(job);
  CutJobs();
  const Json more = {{"spec", {{"tfReplicaSpecs", {{"Worker", {{"replicas", 3}}}}}}}};
  ASSERT_TRUE(world_.server().Patch(World::KeyOf(Kind::kTFJob, kJob), more).ok());
  const client::Key group = World::KeyOf(Kind::kCoschedulingPodGroup, kJob);
  ASSERT_TRUE(world_.server().Patch(group, {{"spec", {{"minMember", 3}}}}).ok());
  Settle();
  const StatusOr<Json> kept = static_cast<store::Store&>(world_.server()).GetJson(group);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ((*kept)["spec"]["minMember"], 3);
}

// An old leader with an outdated spec must not undo the new leader's change to the NetworkPolicy,
// which now closes another port.
TEST_F(CreatesTest, AnOldSpecChangesNoNetworkPolicy) {
  world_.SetNetworkPolicies(policy::NetworkPolicies::kAll);
  ASSERT_TRUE(world_.StartOperator().ok());
  Apply(Job(0, 1));
  const client::Key job = World::KeyOf(Kind::kTFJob, kJob);
  const client::Key key = World::KeyOf(Kind::kNetworkPolicy, "job-tasks");
  auto& store = static_cast<store::Store&>(world_.server());
  CutJobs();
  Json spec = *(*store.GetJson(job)).find("spec");
  Json& container = spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0];
  container["ports"] = Json::array({{{"name", "tfjob-port"}, {"containerPort", 3000}}});
  ASSERT_TRUE(store.Patch(job, {{"spec", spec}}).ok());
  const Json rules = policy::NetworkPolicyRules(kJob, policy::NetworkPolicySpec{{3000}});
  ASSERT_TRUE(store.Patch(key, {{"spec", rules}}).ok());
  Settle();
  const StatusOr<Json> kept = store.GetJson(key);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ((*kept)["spec"], rules);
}

// A webhook changes every NetworkPolicy to allow all traffic, in the same call that writes it. No
// pod may be created under the webhook's rules.
TEST_F(CreatesTest, NoPodIsCreatedIfAWebhookOpensTheNetworkPolicy) {
  world_.SetNetworkPolicies(policy::NetworkPolicies::kAll);
  ASSERT_TRUE(world_.StartOperator().ok());
  world_.operator_client().Admit([](Kind kind, Json& object) {
    if (kind == Kind::kNetworkPolicy) object["spec"]["ingress"] = Json::array({Json::object()});
  });
  ASSERT_TRUE(world_.server().Create(Kind::kTFJob, Job(0, 1)).ok());
  Advance(1min);
  EXPECT_EQ(Count(Kind::kNetworkPolicy), 1u);
  EXPECT_EQ(CountCalls(Kind::kPod), 0);
  EXPECT_EQ(Messages("FailedCreateNetworkPolicy").size(), 1u);
  // Expect two events: one because the server stored other rules, and one because the rules keep
  // changing.
  const std::vector<std::string> changed = Messages("FailedChangeNetworkPolicy");
  const auto count = [&](const std::string& part) {
    return std::count_if(changed.begin(), changed.end(), [&](const std::string& message) {
      return message.find(part) != std::string::npos;
    });
  };
  EXPECT_EQ(count("the server stored other rules than it was sent: spec.ingress"), 1);
  EXPECT_EQ(count("Something keeps changing spec.ingress"), 1);
  world_.operator_client().Admit(nullptr);
  Advance(10min);
  EXPECT_EQ(Count(Kind::kPod), 1u);
}

// The job no longer requests a NetworkPolicy, so the new leader has deleted the policy. The old
// leader must not recreate it.
TEST_F(CreatesTest, AnOldSpecBringsNoNetworkPolicyBack) {
  world_.SetNetworkPolicies(policy::NetworkPolicies::kAnnotated);
  ASSERT_TRUE(world_.StartOperator().ok());
  Json job = Job(0, 1);
  job["metadata"]["annotations"] = {{"tfjob.dev/network-policy", "true"}};
  Apply(job);
  const client::Key key = World::KeyOf(Kind::kNetworkPolicy, "job-tasks");
  const auto annotate = [this](const Json& value) {
    const Json patch = {{"metadata", {{"annotations", {{"tfjob.dev/network-policy", value}}}}}};
    return world_.server().Patch(World::KeyOf(Kind::kTFJob, kJob), patch).status();
  };
  ASSERT_EQ(CountCalls(Kind::kNetworkPolicy), 1);
  CutJobs();
  ASSERT_TRUE(annotate("false").ok());
  ASSERT_TRUE(world_.Delete(Kind::kNetworkPolicy, key.name).ok());
  Settle();
  EXPECT_EQ(Count(Kind::kNetworkPolicy), 0u);
  // The policy must not have been recreated and deleted again, either.
  EXPECT_EQ(CountCalls(Kind::kNetworkPolicy), 1);
}

// The job now requests a NetworkPolicy, so the new leader has created one. The old leader must not
// delete it.
TEST_F(CreatesTest, AnOldSpecDeletesNoNetworkPolicy) {
  world_.SetNetworkPolicies(policy::NetworkPolicies::kAnnotated);
  ASSERT_TRUE(world_.StartOperator().ok());
  Json job = Job(0, 1);
  job["metadata"]["annotations"] = {{"tfjob.dev/network-policy", "true"}};
  Apply(job);
  auto& store = static_cast<store::Store&>(world_.server());
  const client::Key key = World::KeyOf(Kind::kNetworkPolicy, "job-tasks");
  Json policy = *store.GetJson(key);
  const auto annotate = [&](const char* value) {
    const Json patch = {{"metadata", {{"annotations", {{"tfjob.dev/network-policy", value}}}}}};
    return store.Patch(World::KeyOf(Kind::kTFJob, kJob), patch).status();
  };
  ASSERT_TRUE(annotate("false").ok());
  Settle();
  ASSERT_EQ(Count(Kind::kNetworkPolicy), 0u);
  CutJobs();
  ASSERT_TRUE(store.HasCutWatch());
  ASSERT_TRUE(annotate("true").ok());
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp"}) {
    policy["metadata"].erase(field);
  }
  ASSERT_TRUE(store.Create(Kind::kNetworkPolicy, policy).ok());
  Settle();
  EXPECT_EQ(Count(Kind::kNetworkPolicy), 1u);
}

}  // namespace
}  // namespace tfjob::timelines
