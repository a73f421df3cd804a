#include "operator/render/render.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/defaults.h"
#include "operator/objects/service.h"
#include "operator/policy/decide.h"
#include "operator/policy/facts/restart_policy.h"
#include "operator/policy/testing.h"
#include "operator/render/cluster_spec.h"
#include "operator/render/native_group.h"
#include "operator/render/pod_group.h"
#include "operator/render/template.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::render {
namespace {

using api::ReplicaType;
using api::RestartPolicy;
using objects::Kind;
using policy::testing::At;
using policy::testing::MakeJob;
using policy::testing::TypeSpec;
using enum ReplicaType;

Json Parse(std::string_view text) {
  return ParseJson(text, "test").value();
}

void SetTemplate(api::TFJob& job, ReplicaType type, std::string_view text) {
  job.spec.replicas[type].pod_template = std::make_shared<const Json>(Parse(text));
  api::SetDefaults(job);
}

std::string TfConfig(const api::TFJob& job, ReplicaType type, int32_t index) {
  return ClusterSpec(job, ClusterDns("")).TfConfigOf({type, index});
}

StatusOr<Desired> RenderFirst(const api::TFJob& job) {
  return Render(job, policy::Decide(job, {}, At(0), {}), ClusterDns(""));
}

// Builds the object with the given kind and name that the job's first reconcile creates.
Json BuildFirst(const api::TFJob& job, Kind kind, const std::string& name) {
  const StatusOr<Desired> desired = RenderFirst(job);
  EXPECT_TRUE(desired.ok()) << desired.status();
  for (const DesiredObject& object : desired->objects()) {
    if (object.kind == kind && object.name == name) return desired->Build(object);
  }
  ADD_FAILURE() << "no " << Name(kind) << " " << name;
  return nullptr;
}

// Checks TF_CONFIG in static mode byte for byte: all tasks have the same cluster, which includes
// the evaluator and has sorted keys.
TEST(TfConfig, Static) {
  api::TFJob job = MakeJob({{kChief}, {kPS, 2}, {kWorker, 2}, {kEvaluator}});
  const std::string cluster =
      R"({"cluster":{"chief":["mnist-chief-0.ns.svc:2222"],)"
      R"("evaluator":["mnist-evaluator-0.ns.svc:2222"],)"
      R"("ps":["mnist-ps-0.ns.svc:2222","mnist-ps-1.ns.svc:2222"],)"
      R"("worker":["mnist-worker-0.ns.svc:2222","mnist-worker-1.ns.svc:2222"]},)";
  EXPECT_EQ(TfConfig(job, kChief, 0),
            cluster + R"("task":{"type":"chief","index":0},"environment":"cloud"})");
  EXPECT_EQ(TfConfig(job, kPS, 1),
            cluster + R"("task":{"type":"ps","index":1},"environment":"cloud"})");
  EXPECT_EQ(TfConfig(job, kWorker, 1),
            cluster + R"("task":{"type":"worker","index":1},"environment":"cloud"})");
  EXPECT_EQ(TfConfig(job, kEvaluator, 0),
            cluster + R"("task":{"type":"evaluator","index":0},"environment":"cloud"})");
  EXPECT_EQ(TfConfig(MakeJob({{kMaster}, {kWorker}}), kMaster, 0),
            R"({"cluster":{"master":["mnist-master-0.ns.svc:2222"],)"
            R"("worker":["mnist-worker-0.ns.svc:2222"]},)"
            R"("task":{"type":"master","index":0},"environment":"cloud"})");
}

// Checks TF_CONFIG in dynamic mode byte for byte: each task gets only the addresses that it needs.
TEST(TfConfig, Dynamic) {
  api::TFJob job = MakeJob({{kChief}, {kPS, 2}, {kWorker, 3}, {kEvaluator}});
  job.spec.enable_dynamic_worker = true;
  const std::string servers = R"("ps":["mnist-ps-0.ns.svc:2222","mnist-ps-1.ns.svc:2222"])";
  EXPECT_EQ(TfConfig(job, kWorker, 2),
            R"({"cluster":{"worker":{"2":"mnist-worker-2.ns.svc:2222"},)" + servers +
                R"(},"task":{"type":"worker","index":2}})");
  EXPECT_EQ(TfConfig(job, kPS, 1), R"({"cluster":{"worker":{},"ps":["mnist-ps-1.ns.svc:2222"]},)"
                                   R"("task":{"type":"ps","index":1}})");
  EXPECT_EQ(TfConfig(job, kChief, 0), R"({"cluster":{"worker":{},)" + servers +
                                          R"(,"chief":["mnist-chief-0.ns.svc:2222"]},)" +
                                          R"("task":{"type":"chief","index":0}})");
  EXPECT_EQ(TfConfig(job, kEvaluator, 0), R"({"cluster":{"worker":{},)" + servers +
                                              R"(,"chief":["mnist-chief-0.ns.svc:2222"],)" +
                                              R"("evaluator":["mnist-evaluator-0.ns.svc:2222"]},)" +
                                              R"("task":{"type":"evaluator","index":0}})");

  job = MakeJob({{kMaster}, {kWorker, 1}});
  job.spec.enable_dynamic_worker = true;
  EXPECT_EQ(TfConfig(job, kWorker, 0),
            R"({"cluster":{"worker":{"0":"mnist-worker-0.ns.svc:2222"},"ps":null},)"
            R"("task":{"type":"worker","index":0}})");
  EXPECT_EQ(TfConfig(job, kMaster, 0),
            R"({"cluster":{"worker":{},"ps":[],"master":["mnist-master-0.ns.svc:2222"]},)"
            R"("task":{"type":"master","index":0}})");
}

// The trainer must be able to parse the TF_CONFIG that the operator writes.
TEST(TfConfig, ReadsBack) {
  for (const bool dynamic : {false, true}) {
    api::TFJob job = MakeJob({{kChief}, {kPS, 1}, {kWorker, 2}, {kEvaluator}});
    job.spec.enable_dynamic_worker = dynamic;
    for (const auto& [type, spec] : job.spec.replicas) {
      const std::string text = TfConfig(job, type, 0);
      const auto parsed = cluster::ParseTfConfig(text);
      ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
      const cluster::Task task{std::string(api::LowerName(type)), 0};
      EXPECT_EQ(parsed->task, task);
      EXPECT_EQ(parsed->cluster.address(task), ClusterDns("")(job, type)(0));
      EXPECT_EQ(parsed->cluster.address({"ps", 0}), "mnist-ps-0.ns.svc:2222");
    }
  }
}

// A TF_CONFIG that exceeds the limit for one string of the environment is rejected, with a message
// that contains the largest number of replicas that fits.
TEST(TfConfig, ThatNoProgramCanBeStartedWithIsRefused) {
  api::TFJob job = MakeJob({{kChief}, {kPS, 2}, {kWorker, 5000}});
  const auto render = [&] { return RenderFirst(job).status(); };
  EXPECT_EQ(Message(render()),
            "spec.tfReplicaSpecs.Worker.replicas: TF_CONFIG would have 159069 bytes (5000 "
            "addresses of this type with up to 32 bytes each, and those of the other types), but "
            "Linux starts no program with more than 131061 bytes in this variable; at most 4124 "
            "replicas of this type fit, or set spec.enableDynamicWorker to true, so that each task "
            "gets only the addresses it needs");
  job.spec.replicas[kWorker].replicas = 4125;
  EXPECT_FALSE(render().ok());
  job.spec.replicas[kWorker].replicas = 4124;
  EXPECT_TRUE(render().ok()) << render();
  EXPECT_LE(TfConfig(job, kWorker, 4123).size() + sizeof("TF_CONFIG="), 128 * 1024);
  job.spec.replicas[kWorker].replicas = 5000;
  job.spec.enable_dynamic_worker = true;
  EXPECT_TRUE(render().ok()) << render();
  job.spec.replicas[kPS].replicas = 5000;
  EXPECT_TRUE(Message(render()).starts_with("spec.tfReplicaSpecs.PS.replicas: TF_CONFIG would "))
      << render();
}

TEST(PodGroup, CarriesOnlyTheAnnotationsOfItsScheduler) {
  api::TFJob job = MakeJob({{kWorker, 2}});
  job.metadata.annotations = {{"volcano.sh/preemptable", "true"},
                              {"scheduling.volcano.sh/x", "1"},
                              {"notvolcano.sh/x", "2"},
                              {"volcano.sh", "3"},
                              {"scheduling.x-k8s.io/x", "4"},
                              {"kubectl.kubernetes.io/last-applied-configuration", "{}"},
                              {"example.com/team", "vision"}};
  const auto annotations = [&](const char* scheduler) {
    const Json group = BuildPodGroup(job, policy::GangFromFlag(scheduler), {.min_member = 2});
    return group["metadata"]["annotations"];
  };
  EXPECT_EQ(annotations("volcano"),
            Parse(R"({"volcano.sh/preemptable": "true", "scheduling.volcano.sh/x": "1"})"));
  EXPECT_EQ(annotations("scheduler-plugins"), Parse(R"({"scheduling.x-k8s.io/x": "4"})"));
}

// A template cannot name another scheduler if the operator enforces one.
TEST(Pod, OfAnEnforcedGangHasItsScheduler) {
  api::TFJob job = MakeJob({{kWorker, 2}});
  SetTemplate(job, kWorker, R"({"spec": {"schedulerName": "default-scheduler", "containers":
      [{"name": "tensorflow", "image": "i"}]}})");
  policy::Gang gang = policy::GangFromFlag("volcano");
  const auto scheduler = [&] {
    const auto parts = Template::Create(job, kWorker, gang);
    return parts->Pod({kWorker, 0}, false, {})["spec"]["schedulerName"];
  };
  EXPECT_EQ(scheduler(), "default-scheduler");
  gang.enforced = true;
  EXPECT_EQ(scheduler(), "volcano");
}

// A job whose gang has not been admitted yet creates only a pod group. If TF_CONFIG would be too
// long, the group would be useless, so rendering fails.
TEST(TfConfig, IsCheckedBeforeThePodGroupIsCreated) {
  policy::DecisionOptions options;
  options.gang = policy::GangFromFlag("volcano");
  const api::TFJob job = MakeJob({{kWorker, 5000}});
  const policy::Verdict verdict = policy::Decide(job, {}, At(0), options);
  ASSERT_TRUE(verdict.create_pods.empty());
  ASSERT_TRUE(verdict.create_pod_group.has_value());
  EXPECT_FALSE(Render(job, verdict, ClusterDns("")).ok());
}

// Checks the addresses of each scheme. The port of a type comes from its template.
TEST(AddressScheme, GivesHostAndPort) {
  api::TFJob job = MakeJob({{kChief}, {kPS, 2}, {kWorker, 2}});
  SetTemplate(job, kPS, R"({"spec":{"containers":[{"name":"tensorflow","ports":
      [{"name":"http","containerPort":80},{"name":"tfjob-port","containerPort":3333}]}]}})");
  EXPECT_EQ(ClusterDns("")(job, kPS)(1), "mnist-ps-1.ns.svc:3333");
  EXPECT_EQ(ClusterDns("cluster.local")(job, kWorker)(0),
            "mnist-worker-0.ns.svc.cluster.local:2222");
  EXPECT_EQ(Loopback(20000)(job, kChief)(0), "127.0.0.1:20000");
  EXPECT_EQ(Loopback(20000)(job, kPS)(1), "127.0.0.1:20002");
  EXPECT_EQ(Loopback(20000)(job, kWorker)(1), "127.0.0.1:20004");
}

// Checks a complete pod: the fields of the template are kept, and the operator's own fields
// override them.
TEST(Pod, AsItIsSent) {
  api::TFJob job = MakeJob({{kPS}, {kWorker, 2, RestartPolicy::kExitCode}});
  SetTemplate(job, kWorker, R"({
    "metadata": {"creationTimestamp": null, "annotations": {"a": "b"}, "finalizers": ["f/g"],
                 "labels": {"team": "vision", "training.kubeflow.org/job-name": "stolen"}},
    "spec": {"restartPolicy": "Always", "future": {"field": 1},
             "initContainers": [{"name": "tensorflow", "image": "i"}],
             "containers": [{"name": "proxy", "image": "p"},
                            {"name": "tensorflow", "image": "t",
                             "env": [{"name": "TF_CONFIG", "value": "mine"}]}]}})");
  const Json pod = BuildFirst(job, Kind::kPod, "mnist-worker-0");
  const Json expected = Parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "mnist-worker-0", "namespace": "ns",
      "annotations": {"a": "b"}, "finalizers": ["f/g"],
      "labels": {"team": "vision", "tfjob.dev/attempt": "0",
                 "training.kubeflow.org/job-name": "mnist",
                 "training.kubeflow.org/job-role": "master",
                 "training.kubeflow.org/operator-name": "tfjob-controller",
                 "training.kubeflow.org/replica-index": "0",
                 "training.kubeflow.org/replica-type": "worker"},
      "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist",
                           "uid": "job-uid", "controller": true, "blockOwnerDeletion": true}]},
    "spec": {
      "restartPolicy": "Never", "future": {"field": 1},
      "initContainers": [{"name": "tensorflow", "image": "i"}],
      "containers": [
        {"name": "proxy", "image": "p"},
        {"name": "tensorflow", "image": "t",
         "ports": [{"name": "tfjob-port", "containerPort": 2222}],
         "env": [{"name": "TF_CONFIG", "value": "mine"},
                 {"name": "TFJOB_UID", "value": "job-uid"},
                 {"name": "TFJOB_ATTEMPT", "value": "0"},
                 {"name": "TF_CONFIG", "value": "?"}]}]}})");
  Json shown = pod;
  shown["spec"]["containers"][1]["env"][3]["value"] = "?";
  EXPECT_EQ(shown, expected) << PrintJsonIndented(shown);
  EXPECT_EQ(pod["spec"]["containers"][1]["env"][3]["value"], TfConfig(job, kWorker, 0));
  EXPECT_FALSE(BuildFirst(job, Kind::kPod, "mnist-worker-1")["metadata"]["labels"].contains(
      "training.kubeflow.org/job-role"));
}

// The kubelet gets the policy from the table of restart policies, which restart_policy_test.cc
// checks.
TEST(Pod, MapsTheRestartPolicy) {
  const auto rendered = [](RestartPolicy wanted) {
    const api::TFJob job = MakeJob({{kWorker, 2, wanted}});
    return BuildFirst(job, Kind::kPod, "mnist-worker-1")["spec"]["restartPolicy"];
  };
  for (const RestartPolicy wanted : api::kRestartPolicies) {
    EXPECT_EQ(rendered(wanted), api::Name(policy::BehaviorOf(wanted).pod_policy))
        << api::Name(wanted);
  }
  EXPECT_EQ(rendered(RestartPolicy::kOnFailure), "OnFailure");
  EXPECT_EQ(rendered(RestartPolicy::kExitCode), "Never");
}

// A job with one replica trains alone. Its pod has no TF_CONFIG, but has the variables that
// identify the job and the attempt.
TEST(Pod, OfALocalJob) {
  const api::TFJob job = MakeJob({{kWorker, 1}, {kPS, 0}});
  EXPECT_EQ(BuildFirst(job, Kind::kPod, "mnist-worker-0")["spec"]["containers"][0]["env"],
            Parse(R"([{"name":"TFJOB_UID","value":"job-uid"},
                      {"name":"TFJOB_ATTEMPT","value":"0"}])"));
}

// A pod with the job's key has an annotation with the id of the operator's key. The template can
// set neither the key nor the id.
TEST(Pod, CarriesTheKeyOfTheJob) {
  api::TFJob job = MakeJob({{kWorker, 1}});
  SetTemplate(job, kWorker, R"({
    "metadata": {"annotations": {"tfjob.dev/key-id": "9.stolen", "a": "b"}},
    "spec": {"initContainers": [{"name": "i", "env": [{"name": "TFJOB_KEY", "value": "init"}]}],
             "containers": [
               {"name": "tensorflow", "image": "t", "env": [{"name": "TFJOB_KEY", "value": "own"}]},
               {"name": "from", "env": [{"name": "TFJOB_KEY", "valueFrom": {"x": 1}}, 7]}]}})");
  policy::Snapshot snapshot;
  snapshot.key_ids = {"1.a", "2.b"};
  const policy::Verdict verdict = policy::Decide(job, snapshot, At(0), {});
  EXPECT_EQ(verdict.key_id, "2.b");
  const KeyScheme scheme = [](const api::TFJob& of, const std::string& id) {
    return id == "2.b" ? StrCat("key of ", of.metadata.uid) : "";
  };
  const StatusOr<Desired> desired = Render(job, verdict, ClusterDns(""), scheme);
  ASSERT_TRUE(desired.ok()) << desired.status();
  const Json pod = desired->Build(desired->objects().back());
  EXPECT_EQ(pod["metadata"]["annotations"], Parse(R"({"a":"b","tfjob.dev/key-id":"2.b"})"));
  EXPECT_EQ(pod["spec"]["containers"][0]["env"], Parse(R"([{"name":"TFJOB_KEY","value":"own"},
                      {"name":"TFJOB_KEY","value":"key of job-uid"},
                      {"name":"TFJOB_UID","value":"job-uid"},
                      {"name":"TFJOB_ATTEMPT","value":"0"}])"));

  const Json shown = desired->ShowAll().back();
  EXPECT_EQ(shown["spec"]["containers"][0]["env"],
            Parse(R"json([{"name":"TFJOB_KEY","value":"(set)"},
                          {"name":"TFJOB_KEY","value":"(set)"},
                          {"name":"TFJOB_UID","value":"job-uid"},
                          {"name":"TFJOB_ATTEMPT","value":"0"}])json"));
  EXPECT_EQ(shown["spec"]["initContainers"][0]["env"][0]["value"], "(set)");
  EXPECT_EQ(shown["spec"]["containers"][1], pod["spec"]["containers"][1]);
}

// A pod without a key has no key id either, so later pods of the job get no key.
TEST(Pod, WithoutAKeyNamesNone) {
  api::TFJob job = MakeJob({{kWorker, 1}});
  SetTemplate(job, kWorker, R"({
    "metadata": {"annotations": {"tfjob.dev/key-id": "9.stolen"}},
    "spec": {"containers": [{"name": "tensorflow", "image": "t"}]}})");
  const KeyScheme none = [](const api::TFJob&, const std::string&) { return ""; };
  for (const char* id : {"", "1.a"}) {
    policy::Verdict verdict = policy::Decide(job, {}, At(0), {});
    verdict.key_id = id;
    for (const KeyScheme& scheme : {KeyScheme(), none}) {
      const StatusOr<Desired> desired = Render(job, verdict, ClusterDns(""), scheme);
      ASSERT_TRUE(desired.ok()) << desired.status();
      const Json pod = desired->Build(desired->objects().back());
      EXPECT_FALSE(pod["metadata"].contains("annotations")) << pod["metadata"];
      EXPECT_EQ(pod["spec"]["containers"][0]["env"][0]["name"], "TFJOB_UID");
    }
  }
}

// In every kind of job, an environment variable contains the time that the program has to shut
// down.
TEST(Pod, KnowsItsGracePeriodIfTheTemplateGivesOne) {
  const std::pair<const char*, const char*> kCases[] = {
      {"300", "300"}, {"0", "0"}, {"-5", "0"}, {"9223372036854775807", "9223372036854775807"}};
  for (const bool dynamic : {false, true}) {
    for (const auto& [given, told] : kCases) {
      api::TFJob job = MakeJob({{kPS}, {kWorker, 2}});
      job.spec.enable_dynamic_worker = dynamic;
      SetTemplate(job, kPS,
                  StrCat(R"({"spec": {"terminationGracePeriodSeconds": )", given,
                         R"(, "containers": [{"name": "tensorflow", "image": "t"}]}})"));
      const Json env = BuildFirst(job, Kind::kPod, "mnist-ps-0")["spec"]["containers"][0]["env"];
      EXPECT_EQ(env[2], (Json{{"name", "TFJOB_GRACE_PERIOD_SECONDS"}, {"value", told}}));
      const Json other =
          BuildFirst(job, Kind::kPod, "mnist-worker-0")["spec"]["containers"][0]["env"];
      EXPECT_NE(other[2]["name"], "TFJOB_GRACE_PERIOD_SECONDS") << "each type has its own template";
    }
  }
}

// The operator passes on grace periods that are not integers, because the API server rejects them.
TEST(Pod, LeavesAGracePeriodThatIsNoNumberToTheServer) {
  for (const char* given : {"\"300\"", "1.5", "null", "[]", "{}"}) {
    api::TFJob job = MakeJob({{kWorker, 2}});
    SetTemplate(job, kWorker,
                StrCat(R"({"spec": {"terminationGracePeriodSeconds": )", given,
                       R"(, "containers": [{"name": "tensorflow", "image": "t"}]}})"));
    const Json spec = BuildFirst(job, Kind::kPod, "mnist-worker-0")["spec"];
    EXPECT_EQ(spec["terminationGracePeriodSeconds"], Parse(given));
    EXPECT_EQ(spec["containers"][0]["env"].size(), 3u);
  }
}

// With enableDynamicWorker, a worker gets the type of the chief in a separate variable instead of
// TF_CONFIG.
TEST(Pod, OfADynamicJobIsToldWhoTheChiefIs) {
  const std::pair<ReplicaType, const char*> kCases[] = {
      {kChief, "chief"}, {kMaster, "master"}, {kPS, "worker"}};
  for (const auto& [other, chief] : kCases) {
    api::TFJob job = MakeJob({{other}, {kWorker, 2}});
    job.spec.enable_dynamic_worker = true;
    const Json env = BuildFirst(job, Kind::kPod, "mnist-worker-1")["spec"]["containers"][0]["env"];
    ASSERT_EQ(env.size(), 5u);
    EXPECT_EQ(env[2], (Json{{"name", "TFJOB_CHIEF"}, {"value", chief}}));
    EXPECT_EQ(env[3]["name"], "TFJOB_ADDRESS_PATTERNS");
    EXPECT_EQ(env[4]["name"], "TF_CONFIG");
  }
}

// The pod has the attempt both as a label and as an environment variable.
TEST(Pod, CarriesItsAttempt) {
  api::TFJob job = MakeJob({{kWorker, 2}});
  job.status.attempt = 3;
  const Json pod = BuildFirst(job, Kind::kPod, "mnist-worker-0");
  EXPECT_EQ(pod["metadata"]["labels"]["tfjob.dev/attempt"], "3");
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][1]["value"], "3");
}

// Checks a complete service: it is headless, publishes the addresses of pods that are not ready,
// and has every port in the template's order, with its protocol and a name.
TEST(Service, AsItIsSent) {
  api::TFJob job = MakeJob({{kPS}});
  SetTemplate(job, kPS, R"({"metadata":{"labels":{"team":"vision"}},
    "spec":{"containers":[{"name":"tensorflow","ports":[
      {"containerPort":9000,"protocol":"UDP"},{"containerPort":9000},
      {"name":"tfjob-port","containerPort":2222},{"containerPort":9000,"protocol":"UDP"},
      {"name":"board","containerPort":6006,"protocol":"TCP"}]}]}})");
  EXPECT_EQ(BuildFirst(job, Kind::kService, "mnist-ps-0"), Parse(R"({
    "apiVersion": "v1", "kind": "Service",
    "metadata": {
      "name": "mnist-ps-0", "namespace": "ns",
      "labels": {"training.kubeflow.org/job-name": "mnist",
                 "training.kubeflow.org/operator-name": "tfjob-controller",
                 "training.kubeflow.org/replica-index": "0",
                 "training.kubeflow.org/replica-type": "ps"},
      "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist",
                           "uid": "job-uid", "controller": true, "blockOwnerDeletion": true}]},
    "spec": {
      "clusterIP": "None", "publishNotReadyAddresses": true,
      "selector": {"training.kubeflow.org/job-name": "mnist",
                   "training.kubeflow.org/operator-name": "tfjob-controller",
                   "training.kubeflow.org/replica-index": "0",
                   "training.kubeflow.org/replica-type": "ps"},
      "ports": [{"name": "port-9000-udp", "port": 9000, "protocol": "UDP"},
                {"name": "port-9000", "port": 9000},
                {"name": "tfjob-port", "port": 2222},
                {"name": "board", "port": 6006}]}})"));
}

// Services come before pods, each in slot order.
TEST(Render, OrdersObjects) {
  const auto desired = RenderFirst(MakeJob({{kWorker, 2}, {kChief}}));
  ASSERT_TRUE(desired.ok());
  std::string order;
  for (const DesiredObject& object : desired->objects()) {
    order += StrCat(Name(object.kind), " ", object.name, "\n");
  }
  EXPECT_EQ(order,
            "Service mnist-chief-0\nService mnist-worker-0\nService mnist-worker-1\n"
            "Pod mnist-chief-0\nPod mnist-worker-0\nPod mnist-worker-1\n");
  EXPECT_EQ(desired->ShowAll().size(), 6u);
}

std::string Specs(policy::NativeVersion version) {
  const api::TFJob job = MakeJob({{kWorker, 2}});
  const policy::PodGroupSpec spec{.min_member = 2};
  const Json workload = BuildWorkload(job, version, spec);
  const Json group = BuildNativeGroup(job, version, spec);
  EXPECT_EQ(workload["metadata"], group["metadata"]);
  EXPECT_EQ(workload["metadata"]["name"], "mnist");
  EXPECT_EQ(workload["metadata"]["ownerReferences"][0]["uid"], "job-uid");
  EXPECT_EQ(workload["apiVersion"], group["apiVersion"]);
  std::string text = group["apiVersion"];
  for (const Json& object : {workload, group}) {
    text += StrCat("\n", object["kind"].get<std::string>(), " ", PrintJson(object["spec"]));
  }
  return text;
}

TEST(NativeGang, EachVersionHasItsForm) {
  EXPECT_EQ(Specs(policy::NativeVersion::kV1Alpha2),
            R"(scheduling.k8s.io/v1alpha2
Workload {"controllerRef":{"apiGroup":"kubeflow.org","kind":"TFJob","name":"mnist"},)"
            R"("podGroupTemplates":[{"name":"replicas","schedulingPolicy":{"gang":{"minCount":2}}}]}
PodGroup {"podGroupTemplateRef":{"workload":{"podGroupTemplateName":"replicas",)"
            R"("workloadName":"mnist"}},"schedulingPolicy":{"gang":{"minCount":2}}})");
  EXPECT_EQ(Specs(policy::NativeVersion::kV1Beta1),
            R"(scheduling.k8s.io/v1beta1
Workload {"controllerRef":{"apiGroup":"kubeflow.org","kind":"TFJob","name":"mnist"},)"
            R"("podGroupTemplates":[{"name":"replicas","schedulingPolicy":{"gang":{"minCount":2}}}]}
PodGroup {"schedulingPolicy":{"gang":{"minCount":2}},)"
            R"("workloadRef":{"templateName":"replicas","workloadName":"mnist"}})");
}

// A template from which no pod can be built must cause an error with the path of the invalid field,
// not a crash.
TEST(Render, RefusesBadTemplates) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{}", "spec.tfReplicaSpecs.Worker.template.spec.containers: one of the containers"},
      {"7", "spec.tfReplicaSpecs.Worker.template.spec.containers: one of the containers"},
      {R"({"spec":{"containers":{}}})", "spec.tfReplicaSpecs.Worker.template.spec.containers: "},
      {R"({"spec":{"containers":[7,null]}})", "spec.tfReplicaSpecs.Worker.template.spec.contain"},
      {R"({"spec":{"containers":[{"name":7}]}})",
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].name: "},
      {R"({"spec":{"containers":[{"name":"tensorflow","env":{}}]}})",
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].env: "},
      {R"({"spec":{"containers":[{"name":"tensorflow","ports":[{"containerPort":"x"}]}]}})",
       "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports[0].containerPort: "},
      {R"({"metadata":{"labels":{"a":1}},"spec":{"containers":[{"name":"tensorflow"}]}})",
       "spec.tfReplicaSpecs.Worker.template.metadata.labels"},
  };
  for (const auto& [text, message] : kCases) {
    api::TFJob job = MakeJob({{kWorker, 2}});
    SetTemplate(job, kWorker, text);
    const auto desired = RenderFirst(job);
    ASSERT_FALSE(desired.ok()) << text;
    EXPECT_TRUE(Message(desired.status()).starts_with(message)) << desired.status();
  }
  api::TFJob job = MakeJob({{kWorker, 2}});
  job.spec.replicas[kWorker].pod_template = nullptr;
  EXPECT_FALSE(RenderFirst(job).ok());
}

}  // namespace
}  // namespace tfjob::render
