#include "operator/policy/gang.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/objects/custom_resource.h"
#include "operator/policy/decide.h"
#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using api::ReplicaType;
using testing::At;
using testing::MakeJob;
using testing::Scene;

const Gang kVolcano = GangFromFlag("Volcano");
const Gang kPlugins = GangFromFlag("my-scheduler");

api::TFJob JobWithRequests() {
  api::TFJob job = MakeJob({{ReplicaType::kPS, 1}, {ReplicaType::kWorker, 3}});
  const auto give = [&](ReplicaType type, const Json& resources) {
    const Json container = {{"name", "tensorflow"}, {"image", "i"}, {"resources", resources}};
    job.spec.replicas.at(type).pod_template =
        std::make_shared<const Json>(Json{{"spec", {{"containers", Json::array({container})}}}});
  };
  give(ReplicaType::kPS, {{"requests", {{"cpu", "500m"}, {"memory", "1Gi"}}}});
  give(ReplicaType::kWorker, {{"limits", {{"cpu", 2}, {"memory", "3Gi"}}}});
  return job;
}

// Puts the pod group that the operator would create for the job into the snapshot, with the given
// phase.
void PutGroup(Scene& scene, const PodGroupSpec& spec, const std::string& phase) {
  auto group = std::make_shared<objects::CustomResource>();
  group->metadata.name = scene.job.metadata.name;
  group->metadata.uid = "group-uid";
  Json object = {{"spec", {{"minMember", spec.min_member}}}, {"status", {{"phase", phase}}}};
  if (!spec.min_resources.empty()) object["spec"]["minResources"] = spec.min_resources;
  group->object = std::make_shared<const Json>(std::move(object));
  scene.snapshot.pod_groups = {{GangScheduler::kVolcano, group}};
}

TEST(Gang, TheFlagIsVolcanoOrTheNameOfAScheduler) {
  EXPECT_EQ(GangFromFlag(""), Gang());
  EXPECT_EQ(GangFromFlag("None"), Gang());
  EXPECT_EQ(kVolcano, (Gang{GangScheduler::kVolcano, "volcano"}));
  EXPECT_EQ(kPlugins, (Gang{GangScheduler::kCoscheduling, "my-scheduler"}));
}

TEST(Gang, TheAnnotationWinsOverTheFlag) {
  api::TFJob job = MakeJob({{ReplicaType::kWorker, 1}});
  DecisionOptions options;
  EXPECT_EQ(GangOf(job, options), Gang());
  options.gang = kPlugins;
  EXPECT_EQ(GangOf(job, options), kPlugins);
  std::string& word = job.metadata.annotations["tfjob.dev/gang-scheduler"];
  word = "none";
  EXPECT_EQ(GangOf(job, options), Gang());
  word = "vulcano";
  EXPECT_EQ(GangOf(job, options), kPlugins);
  word = "volcano";
  EXPECT_EQ(GangOf(job, options), kVolcano);
  word = "scheduler-plugins";
  EXPECT_EQ(GangOf(job, options), kPlugins);
  options.gang = kVolcano;
  EXPECT_EQ(GangOf(job, options).scheduler_name, "scheduler-plugins-scheduler");
}

TEST(Gang, AnEnforcedFlagWinsOverTheAnnotation) {
  api::TFJob job = MakeJob({{ReplicaType::kWorker, 1}});
  DecisionOptions options;
  options.gang = kVolcano;
  options.gang.enforced = true;
  for (const char* word : {"none", "native", "scheduler-plugins", "vulcano", "volcano"}) {
    job.metadata.annotations["tfjob.dev/gang-scheduler"] = word;
    EXPECT_EQ(GangOf(job, options), options.gang) << word;
  }
  // A warning must report that the annotation has no effect.
  job.metadata.annotations["tfjob.dev/gang-scheduler"] = "none";
  const auto warnings = [&] {
    std::vector<std::string> messages;
    for (const JobEvent& event : Decide(job, {}, testing::At(0), options).events) {
      if (event.reason == "TFJobSpecWarning") messages.push_back(event.message);
    }
    return messages;
  };
  EXPECT_EQ(warnings(), std::vector<std::string>{
                            "metadata.annotations[tfjob.dev/gang-scheduler]: ignored, because the "
                            "operator enforces volcano for all jobs"});
  job.metadata.annotations["tfjob.dev/gang-scheduler"] = "volcano";
  EXPECT_EQ(warnings(), std::vector<std::string>());
}

TEST(Gang, KubernetesOwnIsPlacedByTheSchedulerThatATemplateNames) {
  EXPECT_EQ(GangFromFlag("Native").scheduler, GangScheduler::kNative);
  api::TFJob job = MakeJob({{ReplicaType::kPS, 1}, {ReplicaType::kWorker, 1}});
  job.metadata.annotations["tfjob.dev/gang-scheduler"] = "native";
  EXPECT_EQ(GangOf(job, {}), (Gang{GangScheduler::kNative, "default-scheduler"}));
  job.spec.replicas.at(ReplicaType::kWorker).pod_template =
      std::make_shared<const Json>(Json{{"spec", {{"schedulerName", "mine"}}}});
  EXPECT_EQ(GangOf(job, {}), (Gang{GangScheduler::kNative, "mine"}));
}

TEST(Gang, MembersThatWillNeverBeEnoughWaitUntilTheGroupWasPlaced) {
  api::TFJob job = MakeJob({{ReplicaType::kWorker, 2}});
  job.spec.run_policy.scheduling_policy.emplace().min_available = 3;
  Scene scene(job);
  scene.options.gang = GangFromFlag("native");
  scene.snapshot.native_version = ApiVersionOf(NativeVersion::kV1Beta1);
  Verdict verdict = scene.Reconcile(0);
  EXPECT_EQ(verdict.create_pods.size(), 2u);
  EXPECT_FALSE(verdict.gang.alone);
  objects::Pod placed = testing::MakePod("mnist-worker-0", objects::PodPhase::kPending);
  placed.node_name = "node-1";
  scene.Put(placed);
  verdict = scene.Reconcile(1);
  EXPECT_EQ(verdict.create_pods.size(), 1u);
  EXPECT_TRUE(verdict.gang.alone);
}

// Replicas that have ended (for example, before a suspension) are not recreated. The group is only
// large enough for the other replicas, which are placed together.
TEST(Gang, AGroupDoesNotWaitForReplicasThatHaveEndedBefore) {
  Scene scene(MakeJob({{ReplicaType::kWorker, 2}, {ReplicaType::kEvaluator, 1}}));
  scene.options.gang = GangFromFlag("native");
  scene.snapshot.native_version = ApiVersionOf(NativeVersion::kV1Beta1);
  ASSERT_EQ(scene.Reconcile(0).create_pod_group->min_member, 3);
  scene.job.status.replica_statuses[ReplicaType::kEvaluator].completed_indexes = "0";
  const Verdict verdict = scene.Reconcile(1);
  ASSERT_TRUE(verdict.create_pod_group);
  EXPECT_EQ(verdict.create_pod_group->min_member, 2);
  EXPECT_EQ(verdict.create_workload->min_member, 2);
  EXPECT_FALSE(verdict.gang.alone);
  EXPECT_EQ(verdict.create_pods.size(), 2u);
}

TEST(Gang, VersionsOfKubernetesOwnThatAreNotKnownAreNone) {
  EXPECT_EQ(NativeVersionOf("scheduling.k8s.io/v1alpha2"), NativeVersion::kV1Alpha2);
  EXPECT_EQ(NativeVersionOf("scheduling.k8s.io/v1beta1"), NativeVersion::kV1Beta1);
  for (const char* other : {"", "v1beta1", "scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1"}) {
    EXPECT_EQ(NativeVersionOf(other), NativeVersion::kNone) << other;
  }
}

TEST(Gang, AJobWithoutReplicasIsNoGang) {
  DecisionOptions options;
  options.gang = kVolcano;
  EXPECT_EQ(GangOf(MakeJob({{ReplicaType::kWorker, 0}}), options), Gang());
}

TEST(Gang, AsksForWhatItsFirstPodsRequest) {
  api::TFJob job = JobWithRequests();
  PodGroupSpec all = WantedPodGroup(job, kVolcano);
  EXPECT_EQ(all.min_member, 4);
  EXPECT_EQ(all.queue, "default");
  EXPECT_EQ(all.min_resources,
            (std::map<std::string, std::string>{{"cpu", "6500m"}, {"memory", "10Gi"}}));
  job.spec.run_policy.scheduling_policy.emplace().min_available = 2;
  PodGroupSpec two = WantedPodGroup(job, kVolcano);
  EXPECT_EQ(two.min_member, 2);
  EXPECT_EQ(two.min_resources,
            (std::map<std::string, std::string>{{"cpu", "2500m"}, {"memory", "4Gi"}}));
  job.spec.run_policy.scheduling_policy->min_resources = {{"cpu", "7"}};
  EXPECT_EQ(WantedPodGroup(job, kVolcano).min_resources,
            (std::map<std::string, std::string>{{"cpu", "7"}}));
}

TEST(Gang, SkipsRequestsThatAreNoQuantities) {
  api::TFJob job = MakeJob({{ReplicaType::kWorker, 1}});
  const Json requests = {
      {"cpu", nullptr}, {"memory", "much"}, {"pods", Json::object()}, {"gpu", 1}};
  const Json container = {
      {"name", "tensorflow"}, {"image", "i"}, {"resources", {{"requests", requests}}}};
  job.spec.replicas.at(ReplicaType::kWorker).pod_template =
      std::make_shared<const Json>(Json{{"spec", {{"containers", Json::array({container})}}}});
  EXPECT_EQ(WantedPodGroup(job, kVolcano).min_resources,
            (std::map<std::string, std::string>{{"gpu", "1"}}));
}

TEST(Gang, VolcanosPodsWaitUntilTheGroupIsInItsQueue) {
  Scene scene(MakeJob({{ReplicaType::kWorker, 2}}));
  scene.options.gang = kVolcano;
  scene.snapshot.services.clear();
  Verdict verdict = scene.ReconcileAndWrite(0);
  EXPECT_TRUE(verdict.create_pod_group);
  EXPECT_TRUE(verdict.create_pods.empty());
  EXPECT_TRUE(verdict.create_services.empty());
  EXPECT_EQ(verdict.status.start_time, std::nullopt);
  PutGroup(scene, {.min_member = 2}, "Pending");
  verdict = scene.ReconcileAndWrite(10);
  EXPECT_FALSE(verdict.create_pod_group);
  EXPECT_TRUE(verdict.create_pods.empty());
  EXPECT_EQ(verdict.requeue_after, std::nullopt);
  PutGroup(scene, {.min_member = 2}, "Inqueue");
  verdict = scene.ReconcileAndWrite(20);
  EXPECT_EQ(verdict.create_pods.size(), 2u);
  EXPECT_EQ(verdict.create_services.size(), 2u);
  EXPECT_EQ(verdict.status.start_time, At(20));
}

TEST(Gang, ThePluginsPodsComeTogetherWithTheGroup) {
  Scene scene(MakeJob({{ReplicaType::kWorker, 2}}));
  scene.options.gang = kPlugins;
  const Verdict verdict = scene.Reconcile(0);
  EXPECT_TRUE(verdict.create_pod_group);
  EXPECT_EQ(verdict.create_pods.size(), 2u);
}

TEST(Gang, TheGroupIsChangedOnlyWhenItsValuesDiffer) {
  api::TFJob job = JobWithRequests();
  Scene scene(job);
  scene.options.gang = kVolcano;
  PodGroupSpec spec = WantedPodGroup(job, kVolcano);
  spec.min_resources["cpu"] = "6.5";
  PutGroup(scene, spec, "Running");
  EXPECT_FALSE(scene.Reconcile(0).change_pod_group);
  spec.min_resources["cpu"] = "6";
  PutGroup(scene, spec, "Running");
  EXPECT_TRUE(scene.Reconcile(0).change_pod_group);
  spec = WantedPodGroup(job, kVolcano);
  spec.min_member = 3;
  PutGroup(scene, spec, "Running");
  ASSERT_TRUE(scene.Reconcile(0).change_pod_group);
  EXPECT_EQ(scene.Reconcile(0).change_pod_group->spec.min_member, 4);
}

TEST(Gang, TheGroupGoesWithSuspensionWithTheEndAndWithTheWish) {
  Scene scene(testing::StartedJob({{ReplicaType::kWorker, 1}}));
  scene.options.gang = kVolcano;
  PutGroup(scene, {.min_member = 1}, "Running");
  EXPECT_TRUE(scene.Reconcile(1).delete_pod_groups.empty());
  scene.job.spec.run_policy.suspend = true;
  EXPECT_EQ(scene.Reconcile(1).delete_pod_groups.size(), 1u);
  scene.job.spec.run_policy.suspend = false;
  scene.options.gang = {};
  EXPECT_EQ(scene.Reconcile(1).delete_pod_groups.size(), 1u);
  scene.options.gang = kVolcano;
  scene.Put(testing::Exited("mnist-worker-0", 0));
  EXPECT_EQ(scene.ReconcileAndWrite(2).delete_pod_groups.size(), 1u);
}

}  // namespace
}  // namespace tfjob::policy
