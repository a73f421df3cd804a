// Checks which connections a job's NetworkPolicy allows. Evaluates the ingress rules of
// networking.k8s.io/v1 with code that is independent of the code under test. Does not test whether
// a cluster's network enforces the policy.
#include "operator/render/network_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/defaults.h"
#include "operator/api/names.h"
#include "operator/policy/testing.h"
#include "operator/render/merge_patch.h"

namespace tfjob::render {
namespace {

using api::ReplicaType;
using policy::NetworkPolicySpec;
using policy::testing::MakeJob;

using PodLabels = std::map<std::string, std::string>;

const PodLabels kMember = {{"training.kubeflow.org/operator-name", "tfjob-controller"},
                           {"training.kubeflow.org/job-name", "mnist"},
                           {"training.kubeflow.org/replica-type", "worker"}};
const PodLabels kOfAnotherJob = {{"training.kubeflow.org/operator-name", "tfjob-controller"},
                                 {"training.kubeflow.org/job-name", "mnist-2"}};
const PodLabels kStranger = {{"app", "web"}};
constexpr const char* kProtocols[] = {"TCP", "UDP", "SCTP"};

// Represents a connection to a pod in the policy's namespace.
struct Connection {
  PodLabels from;
  std::string from_namespace = "ns";
  std::string protocol = "TCP";
  int port = 2222;
};

bool Selects(const Json& selector, const PodLabels& labels) {
  EXPECT_EQ(selector.size(), 1u) << selector << ": the evaluator knows only matchLabels";
  for (const auto& [key, value] : selector.at("matchLabels").items()) {
    const auto found = labels.find(key);
    if (found == labels.end() || found->second != value.get<std::string>()) return false;
  }
  return true;
}

// Returns whether the peer matches. A peer without a namespaceSelector selects pods in the policy's
// own namespace.
bool MatchesPeer(const Json& policy, const Json& peer, const Connection& connection) {
  EXPECT_EQ(peer.size(), 1u) << peer << ": the evaluator knows only podSelector";
  return connection.from_namespace == policy.at("metadata").at("namespace").get<std::string>() &&
         Selects(peer.at("podSelector"), connection.from);
}

bool MatchesPort(const Json& port, const Connection& connection) {
  if (port.value("protocol", "TCP") != connection.protocol) return false;
  if (!port.contains("port")) return true;
  const int first = port.at("port");
  const int last = port.value("endPort", first);
  EXPECT_TRUE(1 <= first && first <= last && last <= 65535) << port;
  return first <= connection.port && connection.port <= last;
}

// Returns whether the rule's list has a match. An absent or empty list matches everything.
bool MatchesAny(const Json& rule, const char* list, const auto& matches) {
  const auto found = rule.find(list);
  if (found == rule.end() || found->empty()) return true;
  return std::any_of(found->begin(), found->end(), matches);
}

// Returns whether a pod that the policy selects accepts the connection, if no other policy selects
// the pod. Rules are alternatives; within a rule, both a peer and a port must match.
bool Admits(const Json& policy, const Connection& connection) {
  const Json& rules = policy.at("spec").at("ingress");
  return std::any_of(rules.begin(), rules.end(), [&](const Json& rule) {
    return MatchesAny(rule, "from",
                      [&](const Json& peer) { return MatchesPeer(policy, peer, connection); }) &&
           MatchesAny(rule, "ports",
                      [&](const Json& port) { return MatchesPort(port, connection); });
  });
}

Json PolicyFor(std::vector<int32_t> ports) {
  return BuildNetworkPolicy(MakeJob({{ReplicaType::kWorker}}), NetworkPolicySpec{std::move(ports)});
}

// Returns the closed ports, their neighbours, the limits of the range, and a few other ports.
std::set<int> Interesting(const std::vector<int32_t>& closed) {
  std::set<int> ports = {1, 2, 1023, 2222, 65534, 65535};
  for (const int port : closed) ports.insert({port - 1, port, port + 1});
  ports.erase(0);
  ports.erase(65536);
  return ports;
}

TEST(NetworkPolicy, ClosesTheJobsPortsToEverybodyElse) {
  const std::vector<std::vector<int32_t>> cases = {
      {2222}, {1}, {65535}, {1, 65535}, {2222, 2223}, {1, 2, 3}, {2222, 2224}, {65534, 65535}, {}};
  for (const std::vector<int32_t>& closed : cases) {
    const Json policy = PolicyFor(closed);
    for (const char* protocol : kProtocols) {
      for (const int port : Interesting(closed)) {
        SCOPED_TRACE(StrCat(PrintJson(closed), " ", protocol, " ", port));
        const bool open = std::find(closed.begin(), closed.end(), port) == closed.end();
        EXPECT_TRUE(Admits(policy, {kMember, "ns", protocol, port}));
        EXPECT_EQ(Admits(policy, {kStranger, "ns", protocol, port}), open);
        EXPECT_EQ(Admits(policy, {{}, "other", protocol, port}), open) << "from outside";
        EXPECT_EQ(Admits(policy, {kOfAnotherJob, "ns", protocol, port}), open);
        EXPECT_EQ(Admits(policy, {kMember, "other", protocol, port}), open) << "same labels";
      }
    }
  }
}

TEST(NetworkPolicy, DecidesOnEveryPort) {
  const Json policy = PolicyFor({1, 2222, 65535});
  for (int port = 1; port <= 65535; ++port) {
    const bool open = port != 1 && port != 2222 && port != 65535;
    ASSERT_EQ(Admits(policy, {kStranger, "ns", "SCTP", port}), open) << port;
  }
}

TEST(NetworkPolicy, SelectsTheJobsPodsAndRestrictsOnlyIngress) {
  const Json policy = PolicyFor({2222});
  EXPECT_EQ(policy["apiVersion"], "networking.k8s.io/v1");
  EXPECT_EQ(policy["kind"], "NetworkPolicy");
  EXPECT_EQ(policy["metadata"]["name"], "mnist-tasks");
  EXPECT_EQ(policy["metadata"]["namespace"], "ns");
  EXPECT_EQ(policy["metadata"]["ownerReferences"][0]["uid"], "job-uid");
  EXPECT_EQ(policy["metadata"]["ownerReferences"][0]["controller"], true);
  EXPECT_EQ(policy["metadata"]["labels"], Json(api::JobSelector("mnist")));
  EXPECT_EQ(policy["spec"]["policyTypes"], Json::array({"Ingress"}));
  EXPECT_FALSE(policy["spec"].contains("egress"));
  EXPECT_TRUE(Selects(policy["spec"]["podSelector"], kMember));
  EXPECT_FALSE(Selects(policy["spec"]["podSelector"], kOfAnotherJob));
  EXPECT_FALSE(Selects(policy["spec"]["podSelector"], kStranger));
}

// The patch turns any spec, even one that someone else has extended, into the wanted spec.
TEST(NetworkPolicy, ThePatchRemovesWhatOthersHaveAdded) {
  const NetworkPolicySpec wanted{{2222, 3000}};
  const Json rules = policy::NetworkPolicyRules("mnist", wanted);
  Json extended = rules;
  extended["ingress"].push_back(Json::object());
  extended["egress"] = Json::array();
  extended["policyTypes"] = {"Ingress", "Egress"};
  extended["podSelector"]["matchLabels"]["app"] = "web";
  extended["podSelector"]["matchExpressions"] = Json::array();
  for (const Json& spec : {extended, rules, Json::object(), Json(nullptr)}) {
    objects::CustomResource existing;
    existing.metadata.uid = "policy-uid";
    existing.object = std::make_shared<const Json>(Json{{"spec", spec}});
    const Json patch = PatchNetworkPolicy(existing, "mnist", wanted);
    EXPECT_EQ(patch["metadata"], Json({{"uid", "policy-uid"}}));
    Json patched = *existing.object;
    patched.merge_patch(patch);
    EXPECT_EQ(patched["spec"], rules) << PrintJson(patch);
  }
}

TEST(MergePatch, SaysOnlyWhatDiffers) {
  const Json from = {{"a", 1}, {"b", {{"c", 2}, {"d", 3}}}, {"e", {1, 2}}};
  EXPECT_EQ(MergePatch(from, from), Json::object());
  EXPECT_EQ(MergePatch(from, {{"a", 1}, {"b", {{"c", 4}}}, {"e", {1}}}),
            Json({{"b", {{"c", 4}, {"d", nullptr}}}, {"e", {1}}}));
  EXPECT_EQ(MergePatch(7, {{"a", 1}}), Json({{"a", 1}}));
  EXPECT_EQ(MergePatch(from, 7), Json(7));
}

}  // namespace
}  // namespace tfjob::render
