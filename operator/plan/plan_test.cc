#include "operator/plan/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/status_json.h"
#include "operator/objects/service.h"
#include "operator/policy/testing.h"
#include "operator/render/render.h"

namespace tfjob::plan {
namespace {

using namespace policy::testing;
using objects::Kind;
using enum ReplicaType;
using enum RestartPolicy;

Plan PlanOf(Scene& scene, int64_t at) {
  const policy::Verdict verdict = scene.Reconcile(at);
  const auto desired = render::Render(scene.job, verdict, render::ClusterDns(""));
  EXPECT_TRUE(desired.ok()) << desired.status();
  return MakePlan(scene.job, verdict, *desired, scene.snapshot);
}

// The first plan creates services, and then pods. It writes the status with the resourceVersion
// that the decision was based on.
TEST(MakePlan, CreatesAndWrites) {
  Scene scene(MakeJob({{kWorker, 2}}), false);
  const Plan plan = PlanOf(scene, 0);
  ASSERT_EQ(plan.creates.size(), 4u);
  EXPECT_EQ(plan.creates[1].kind, Kind::kService);
  EXPECT_EQ(plan.creates[2].kind, Kind::kPod);
  ASSERT_NE(plan.status, nullptr);
  const Json& status = *plan.status;
  EXPECT_EQ(status["apiVersion"], "kubeflow.org/v1");
  EXPECT_EQ(status["kind"], "TFJob");
  EXPECT_EQ(status["metadata"]["name"], "mnist");
  EXPECT_EQ(status["metadata"]["namespace"], "ns");
  EXPECT_EQ(status["metadata"]["resourceVersion"], "1");
  EXPECT_EQ(status["status"]["startTime"], "2026-11-21T09:00:00Z");
  EXPECT_FALSE(plan.empty());
}

// If all objects exist and the status is up to date, the plan is empty.
TEST(MakePlan, IsEmptyAtRest) {
  Scene scene(StartedJob({{kWorker, 2}}));
  for (const char* name : {"mnist-worker-0", "mnist-worker-1"}) {
    scene.Put(MakePod(name, PodPhase::kRunning));
  }
  EXPECT_FALSE(PlanOf(scene, 1).empty());
  scene.ReconcileAndWrite(1);
  scene.job.spec.run_policy.active_deadline_seconds = 60;
  const Plan plan = PlanOf(scene, 2);
  EXPECT_TRUE(plan.empty()) << PrintJsonIndented(Print(plan));
  EXPECT_EQ(plan.requeue_after, Duration(58s));
}

// The plan that resumes a job writes the status and creates no objects yet.
TEST(MakePlan, WritesAResumeFirst) {
  Scene scene(StartedJob({{kWorker, 2}}));
  api::SetCondition(scene.job.status, api::ConditionType::kSuspended, true, "TFJobSuspended", "",
                    At(1));
  const Plan plan = PlanOf(scene, 2);
  EXPECT_TRUE(plan.creates.empty());
  EXPECT_NE(plan.status, nullptr);
  EXPECT_EQ(plan.requeue_after, Duration(0));
  scene.ReconcileAndWrite(2);
  EXPECT_EQ(PlanOf(scene, 2).creates.size(), 2u);
}

// Writing a status as JSON and reading it back must not change it; otherwise, the status would be
// written again.
TEST(MakePlan, SurvivesTheRoundTrip) {
  Scene scene(StartedJob({{kPS, 1, kOnFailure}, {kWorker, 2, kOnFailure}}));
  scene.Put(MakePod("mnist-worker-0", PodPhase::kRunning));
  scene.Put(Exited("mnist-worker-1", 1));
  scene.Put(WithSidecar(Exited("mnist-ps-0", 0), true));
  const policy::Verdict verdict = scene.ReconcileAndWrite(1);
  const Json json = api::StatusToJson(verdict.status);
  EXPECT_EQ(api::ReadStatus(JsonField(json)), verdict.status) << PrintJson(json);
}

// Conditions whose type the operator does not know, because another controller has written them,
// are kept unchanged. They come before the operator's own conditions.
TEST(MakePlan, KeepsForeignConditions) {
  Scene scene(StartedJob({{kWorker, 1}}));
  const Json foreign = {{"type", "example.com/Audited"},
                        {"status", "Unknown"},
                        {"reason", "Waiting"},
                        {"lastTransitionTime", "2026-11-21T08:00:00Z"},
                        {"observedGeneration", 3}};
  Json stored = api::StatusToJson(scene.job.status);
  stored["conditions"].push_back(foreign);
  stored["conditions"].push_back({{"status", "True"}});  // has no type, so it is dropped
  scene.job.status = api::ReadStatus(JsonField(stored));
  EXPECT_EQ(scene.ReconcileAndWrite(1).status, scene.job.status);
  scene.Put(MakePod("mnist-worker-0", PodPhase::kRunning));
  const Plan plan = PlanOf(scene, 2);
  ASSERT_NE(plan.status, nullptr);
  const Json& conditions = (*plan.status)["status"]["conditions"];
  ASSERT_EQ(conditions.size(), 3u);
  EXPECT_EQ(conditions[0], foreign);
  EXPECT_EQ(conditions[1]["type"], "Created");
  EXPECT_EQ(conditions[2]["type"], "Running");
}

// Each delete has the UID of its object. The names of events are derived from their causes.
TEST(MakePlan, DeletesAndTells) {
  Scene scene(StartedJob({{kWorker, 2}}));
  scene.job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kAll;
  scene.job.spec.run_policy.ttl_seconds_after_finished = 0;
  scene.Put(Exited("mnist-worker-0", 0));
  const Plan plan = PlanOf(scene, 1);
  ASSERT_EQ(plan.deletes.size(), 4u);
  EXPECT_EQ(plan.deletes[0].kind, Kind::kPod);
  EXPECT_EQ(plan.deletes[0].uid, "uid-mnist-worker-0");
  EXPECT_EQ(plan.deletes[1].kind, Kind::kService);
  EXPECT_EQ(plan.deletes[3].kind, Kind::kTFJob);
  EXPECT_EQ(plan.deletes[3].uid, "job-uid");
  ASSERT_EQ(plan.events.size(), 2u);
  EXPECT_EQ(plan.events[1].name, policy::EventName(scene.job, "end"));
  EXPECT_EQ(plan.events[1].event.involved.uid, "job-uid");
  EXPECT_EQ(plan.events[1].event.message, "TFJob ns/mnist successfully completed.");
}

// An adopted service keeps its other owners.
TEST(MakePlan, AdoptsBesideOtherOwners) {
  Scene scene(StartedJob({{kWorker, 1}}), false);
  objects::Service orphan = MakeService("mnist-worker-0");
  orphan.metadata.owner_references = {{"v1", "ConfigMap", "notes", "other-uid", false, false}};
  scene.snapshot.orphan_services = {std::make_shared<const objects::Service>(orphan)};
  const Plan plan = PlanOf(scene, 1);
  ASSERT_EQ(plan.adopts.size(), 1u);
  const Json& metadata = (*plan.adopts[0].patch)["metadata"];
  EXPECT_EQ(metadata["uid"], "service-uid-mnist-worker-0");
  ASSERT_EQ(metadata["ownerReferences"].size(), 2u);
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], "other-uid");
  EXPECT_EQ(metadata["ownerReferences"][1]["uid"], "job-uid");
}

// The printed plan lists the steps.
TEST(Print, ListsTheSteps) {
  Scene scene(StartedJob({{kWorker, 1, kOnFailure}}), false);
  scene.Put(Exited("mnist-worker-0", 1));
  const Json json = Print(PlanOf(scene, 1));
  ASSERT_EQ(json["steps"].size(), 5u);
  EXPECT_EQ(json["steps"][0]["create"], "Service mnist-worker-0");
  EXPECT_TRUE(json["steps"][1].contains("status"));
  EXPECT_EQ(json["steps"][2]["delete"], "Pod mnist-worker-0");
  EXPECT_EQ(json["steps"][3]["event"], "ExitedWithCode");
  EXPECT_EQ(json["steps"][4]["event"], "TFJobRestarting");
}

}  // namespace
}  // namespace tfjob::plan
