#include "operator/policy/network_policy.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/api/defaults.h"
#include "operator/api/names.h"
#include "operator/objects/custom_resource.h"
#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;
using enum NetworkPolicies;

constexpr char kAnnotation[] = "tfjob.dev/network-policy";

void SetPort(api::TFJob& job, ReplicaType type, const Json& ports) {
  const Json container = {{"name", "tensorflow"}, {"image", "i"}, {"ports", ports}};
  job.spec.replicas.at(type).pod_template =
      std::make_shared<const Json>(Json{{"spec", {{"containers", Json::array({container})}}}});
  api::SetDefaults(job);
}

// Puts a policy with these rules into the snapshot.
void PutPolicy(Scene& scene, Json rules) {
  auto policy = std::make_shared<objects::CustomResource>();
  policy->metadata.name = "mnist-tasks";
  policy->metadata.uid = "policy-uid";
  policy->object = std::make_shared<const Json>(Json{{"spec", std::move(rules)}});
  scene.snapshot.network_policy = policy;
}

void PutWantedPolicy(Scene& scene) {
  PutPolicy(scene, NetworkPolicyRules("mnist", WantedNetworkPolicy(scene.job)));
}

TEST(NetworkPolicies, TheAnnotationOverridesTheOperatorsSetting) {
  const struct {
    NetworkPolicies setting;
    const char* annotation;  // nullptr for none
    bool wants;
    bool is_held_back = false;
  } cases[] = {
      {kNone, nullptr, false},      {kNone, "false", false},      {kNone, "true", false, true},
      {kAnnotated, nullptr, false}, {kAnnotated, "false", false}, {kAnnotated, "true", true},
      {kAll, nullptr, true},        {kAll, "false", false},       {kAll, "true", true},
      {kIgnored, nullptr, false},   {kIgnored, "true", false},    {kAll, "yes", true},
      {kAnnotated, "yes", false},   {kNone, "yes", false},
  };
  for (const auto& each : cases) {
    api::TFJob job = MakeJob({{ReplicaType::kWorker}});
    if (each.annotation != nullptr) job.metadata.annotations[kAnnotation] = each.annotation;
    EXPECT_EQ(WantsNetworkPolicy(job, each.setting), each.wants);
    EXPECT_EQ(!NetworkPolicyObstacle(job, each.setting).empty(), each.is_held_back);
  }
}

TEST(NetworkPolicies, AreSetByAWord) {
  EXPECT_EQ(ParseNetworkPolicies("none"), kNone);
  EXPECT_EQ(ParseNetworkPolicies("annotated"), kAnnotated);
  EXPECT_EQ(ParseNetworkPolicies("all"), kAll);
  EXPECT_EQ(ParseNetworkPolicies(""), std::nullopt);
  EXPECT_EQ(ParseNetworkPolicies("true"), std::nullopt);
}

// Only the ports of the tasks are closed, each listed once. Ports for metrics, ports of other
// containers and ports of types without replicas remain open.
TEST(NetworkPolicies, CloseThePortsOfTheTasks) {
  api::TFJob job = MakeJob({{ReplicaType::kPS}, {ReplicaType::kWorker, 2}, {ReplicaType::kChief}});
  EXPECT_EQ(WantedNetworkPolicy(job).ports, std::vector<int32_t>{2222});
  SetPort(job, ReplicaType::kPS,
          {{{"name", "metrics"}, {"containerPort", 9090}},
           {{"name", "tfjob-port"}, {"containerPort", 65535}}});
  SetPort(job, ReplicaType::kWorker, {{{"name", "tfjob-port"}, {"containerPort", 1}}});
  EXPECT_EQ(WantedNetworkPolicy(job).ports, (std::vector<int32_t>{1, 2222, 65535}));
  job.spec.replicas.at(ReplicaType::kChief).replicas = 0;
  EXPECT_EQ(WantedNetworkPolicy(job).ports, (std::vector<int32_t>{1, 65535}));
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, int64_t{65536}, int64_t{1} << 40}) {
    SetPort(job, ReplicaType::kPS, {{{"name", "tfjob-port"}, {"containerPort", wrong}}});
    for (const int32_t port : WantedNetworkPolicy(job).ports) {
      EXPECT_TRUE(port == 1 || port == 2222) << port;
    }
  }
}

TEST(NetworkPolicy, IsCreatedWithThePodsAndKeptAsItShouldBe) {
  Scene scene(MakeJob({{ReplicaType::kWorker, 2}}));
  EXPECT_FALSE(scene.Reconcile(0).create_network_policy);
  scene.options.network_policies = kAll;
  const Verdict first = scene.ReconcileAndWrite(0);
  EXPECT_EQ(first.create_network_policy, NetworkPolicySpec{{2222}});
  EXPECT_EQ(first.create_pods.size(), 2u);
  PutWantedPolicy(scene);
  const Verdict rest = scene.Reconcile(1);
  EXPECT_FALSE(rest.create_network_policy || rest.change_network_policy ||
               rest.delete_network_policy);
  Json edited = NetworkPolicyRules("mnist", NetworkPolicySpec{{2222}});
  edited["ingress"].push_back(Json::object());  // admits everything
  PutPolicy(scene, edited);
  const Verdict again = scene.Reconcile(1);
  ASSERT_TRUE(again.change_network_policy);
  EXPECT_EQ(again.change_network_policy->policy, (NetworkPolicyRef{"mnist-tasks", "policy-uid"}));
  EXPECT_EQ(again.change_network_policy->spec, NetworkPolicySpec{{2222}});
  scene.job.metadata.annotations[kAnnotation] = "false";
  EXPECT_TRUE(scene.Reconcile(1).delete_network_policy);
}

// Returns the rules with one value replaced or added.
Json With(Json rules, const char* pointer, const Json& value) {
  rules[Json::json_pointer(pointer)] = value;
  return rules;
}

TEST(NetworkPolicy, AdditionsThatChangeNothingAreLeft) {
  const Json rules = NetworkPolicyRules("mnist", NetworkPolicySpec{{2222}});
  const struct {
    const char* pointer;
    Json value;
    const char* difference;
  } cases[] = {
      {"/note", "a field of a later version", ""},
      {"/ingress/0/priority", 7, ""},
      {"/ingress/1/ports/0/note", {{"by", "webhook"}}, ""},
      {"/egress", Json::array(), ""},
      {"/ingress/1/from", Json::array(), ""},
      {"/podSelector/matchExpressions", nullptr, ""},
      {"/podSelector/matchLabels/app", "x", "spec.podSelector.matchLabels.app"},
      {"/podSelector/matchExpressions", Json::array({{{"key", "a"}, {"operator", "Exists"}}}),
       "spec.podSelector.matchExpressions"},
      {"/policyTypes", {"Ingress", "Egress"}, "spec.policyTypes"},
      {"/ingress/0/from/0/namespaceSelector", Json::object(),
       "spec.ingress[0].from[0].namespaceSelector"},
      {"/ingress/0/ports", Json::array({{{"port", 1}}}), "spec.ingress[0].ports"},
      {"/ingress/1/from", Json::array({{{"ipBlock", {{"cidr", "10.0.0.0/8"}}}}}),
       "spec.ingress[1].from"},
      {"/ingress/1/ports/0/endPort", 2222, "spec.ingress[1].ports[0].endPort"},
      {"/ingress/2", Json::object(), "spec.ingress"},
      {"/ingress", Json::array(), "spec.ingress"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(NetworkPolicyDifference(With(rules, each.pointer, each.value), rules),
              each.difference)
        << each.pointer;
  }
  EXPECT_EQ(NetworkPolicyDifference(rules, rules), "");
  EXPECT_EQ(NetworkPolicyDifference(Json(), rules), "spec");
  Json without = rules;
  without.erase("policyTypes");
  EXPECT_EQ(NetworkPolicyDifference(without, rules), "spec.policyTypes");
}

void OpenPolicy(Scene& scene) {
  PutPolicy(scene, {{"ingress", Json::array({Json::object()})}});
}

TEST(NetworkPolicy, PodsWaitUntilItsDelayedRestore) {
  Scene scene(StartedJob({{ReplicaType::kWorker, 2}}));
  scene.options.network_policies = kAll;
  OpenPolicy(scene);
  const Verdict first = scene.Reconcile(0);
  EXPECT_TRUE(first.change_network_policy);
  EXPECT_EQ(first.create_pods.size(), 2u);
  scene.history.RecordPolicyChange(At(0), Steady(0));
  scene.history.RecordPolicyChange(At(1), Steady(1));
  const Verdict waits = scene.Reconcile(2);
  EXPECT_FALSE(waits.change_network_policy);
  EXPECT_TRUE(waits.create_pods.empty());
  EXPECT_EQ(Waiting(waits), (std::vector<std::string>{"mnist-worker-0", "mnist-worker-1"}));
  ASSERT_FALSE(waits.waiting_pods.empty());
  EXPECT_EQ(waits.waiting_pods[0].not_before, At(3));
  EXPECT_EQ(waits.requeue_after, Duration(1s));
  const Verdict restores = scene.Reconcile(3);
  EXPECT_TRUE(restores.change_network_policy);
  EXPECT_EQ(restores.create_pods.size(), 2u);
}

// The pods wait for the rules, but not for the end of the delay.
TEST(NetworkPolicy, PodsDoNotWaitIfSomebodyElseRestoresIt) {
  Scene scene(StartedJob({{ReplicaType::kWorker}}));
  scene.options.network_policies = kAll;
  scene.history.RecordPolicyChange(At(0), Steady(0));
  OpenPolicy(scene);
  EXPECT_TRUE(scene.Reconcile(0).create_pods.empty());
  PutWantedPolicy(scene);
  EXPECT_EQ(scene.Reconcile(0).create_pods.size(), 1u);
}

TEST(NetworkPolicy, EverySeriesOfChangesIsReportedOnce) {
  Scene scene(StartedJob({{ReplicaType::kWorker}}));
  scene.options.network_policies = kAll;
  OpenPolicy(scene);
  std::vector<std::string> causes;
  for (const int64_t begin : {int64_t{0}, int64_t{700}}) {
    for (int64_t i = 0; i < 8; ++i) {
      for (const JobEvent& event : scene.Reconcile(begin + i).events) {
        causes.push_back(event.cause);
        scene.history.reported.insert(event.cause);
      }
      scene.history.RecordPolicyChange(At(begin + i), Steady(begin + i));
    }
  }
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_NE(causes[0], causes[1]);  // the event names are derived from the causes
  EXPECT_EQ(scene.history.reported, std::set<std::string>{causes[1]});
}

// A policy that is being deleted counts as absent. Creating a new one fails until the old one is
// gone.
TEST(NetworkPolicy, IsCreatedAgainOnceItIsDeleted) {
  Scene scene(MakeJob({{ReplicaType::kWorker}}));
  scene.options.network_policies = kAll;
  PutWantedPolicy(scene);
  objects::CustomResource ending = *scene.snapshot.network_policy;
  ending.metadata.deletion_timestamp = At(0);
  scene.snapshot.network_policy = std::make_shared<const objects::CustomResource>(ending);
  const Verdict verdict = scene.Reconcile(0);
  EXPECT_TRUE(verdict.create_network_policy);
  EXPECT_FALSE(verdict.delete_network_policy);
}

// The policy is kept until the last pod is gone, even after the end of the job.
TEST(NetworkPolicy, OutlivesThePods) {
  for (const bool suspends : {false, true}) {
    Scene scene(StartedJob({{ReplicaType::kWorker}}));
    scene.options.network_policies = kAll;
    scene.job.spec.run_policy.suspend = suspends;
    PutWantedPolicy(scene);
    scene.Put(suspends ? Terminating(MakePod("mnist-worker-0", PodPhase::kRunning), 0)
                       : Exited("mnist-worker-0", 0));
    EXPECT_FALSE(scene.ReconcileAndWrite(1).delete_network_policy);
    EXPECT_FALSE(scene.ReconcileAndWrite(2).delete_network_policy);
    scene.Remove("mnist-worker-0");
    const Verdict verdict = scene.ReconcileAndWrite(3);
    EXPECT_EQ(verdict.delete_network_policy, (NetworkPolicyRef{"mnist-tasks", "policy-uid"}));
    scene.snapshot.network_policy = nullptr;
    EXPECT_FALSE(scene.Reconcile(4).create_network_policy);
  }
}

// A job that requests protection must not run without it.
TEST(NetworkPolicy, HoldsThePodsBackIfTheOperatorCreatesNone) {
  Scene scene(MakeJob({{ReplicaType::kWorker}}), false);
  scene.job.metadata.annotations[kAnnotation] = "true";
  const Verdict verdict = scene.ReconcileAndWrite(0);
  EXPECT_FALSE(verdict.create_network_policy);
  EXPECT_TRUE(verdict.create_pods.empty());
  EXPECT_TRUE(verdict.create_services.empty());
  EXPECT_EQ(Reasons(verdict), std::vector<std::string>{"FailedCreateNetworkPolicy"});
  ASSERT_EQ(verdict.waiting_pods.size(), 1u);
  EXPECT_EQ(verdict.waiting_pods[0].why, "the operator creates no NetworkPolicies");
  ASSERT_FALSE(verdict.status.conditions.empty());
  EXPECT_EQ(verdict.status.conditions.back().reason, "FailedCreatePod");
  EXPECT_NE(verdict.status.conditions.back().message.find("--job-network-policies is none"),
            std::string::npos);
  EXPECT_FALSE(verdict.status.start_time);
  scene.options.network_policies = kAnnotated;
  EXPECT_TRUE(scene.Reconcile(1).create_network_policy);
  scene.options.network_policies = kIgnored;
  EXPECT_EQ(scene.Reconcile(1).create_pods.size(), 1u);
}

}  // namespace
}  // namespace tfjob::policy
