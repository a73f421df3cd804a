#include "operator/control/cache/pack_job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/control/admit.h"
#include "operator/objects/pod.h"
#include "runtime/base/yaml.h"

namespace tfjob::control {
namespace {

using objects::CustomResource;

constexpr char kJob[] = R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: mnist
  namespace: ns
  uid: u
  resourceVersion: "7"
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", mine: kept}
spec:
  runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 60}
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: i}]}}
status:
  conditions:
  - {type: Created, status: "True"}
  - {type: Running, status: "False"}
  - {type: %s, status: "True"}
)";

CustomResource JobIn(const std::string& condition) {
  std::string text = kJob;
  text.replace(text.find("%s"), 2, condition);
  return *objects::ParseCustomResource(ParseYaml(text, "job")->front());
}

TEST(PackJob, KeepsAJobThatHasNotEnded) {
  const CustomResource job = JobIn("Restarting");
  const auto packed = PackJob(job);
  EXPECT_EQ(packed->state, "Restarting");
  const auto unpacked = packed->Unpack();
  Json expected = *job.object;
  expected["metadata"]["annotations"] = {{"mine", "kept"}};
  EXPECT_EQ(*unpacked->object, expected);
  EXPECT_EQ(unpacked->metadata.uid, "u");
  EXPECT_EQ(unpacked->metadata.annotations.size(), 1u);
  EXPECT_EQ(unpacked->api_version, "kubeflow.org/v1");
  EXPECT_TRUE(Admit(*unpacked, AdmissionRules{}).verdict.ok());
}

// The packed fields must lead to the same clean-up and TTL as the whole job.
TEST(PackJob, KeepsNoTemplatesOfAJobThatHasEnded) {
  for (const char* end : {"Succeeded", "Failed"}) {
    const CustomResource job = JobIn(end);
    const auto packed = PackJob(job);
    EXPECT_EQ(packed->state, end);
    const auto unpacked = packed->Unpack();
    Json expected = *job.object;
    expected["metadata"]["annotations"] = {{"mine", "kept"}};
    expected["spec"]["tfReplicaSpecs"]["Worker"].erase("template");
    EXPECT_EQ(*unpacked->object, expected);
    const Admission whole = Admit(job, AdmissionRules{});
    const Admission packed_up = Admit(*unpacked, AdmissionRules{});
    EXPECT_TRUE(packed_up.verdict.ok()) << packed_up.verdict;
    EXPECT_EQ(packed_up.job.status, whole.job.status);
    EXPECT_EQ(packed_up.job.spec.run_policy, whole.job.spec.run_policy);
    EXPECT_EQ(packed_up.job.spec.replicas.at(api::ReplicaType::kWorker).replicas, 2);
  }
}

TEST(PackJob, AJobThatCannotBeReadIsRefusedWithItsProblem) {
  CustomResource job = JobIn("Created");
  job.problem = InvalidArgument("spec.x: nested deeper than 200 levels");
  const auto unpacked = PackJob(job)->Unpack();
  EXPECT_EQ(unpacked->problem, job.problem);
  const Admission admission = Admit(*unpacked, AdmissionRules{});
  EXPECT_EQ(admission.verdict, job.problem);
  EXPECT_EQ(admission.job.metadata.name, "mnist");
  EXPECT_EQ(admission.job.spec.run_policy.clean_pod_policy, api::CleanPodPolicy::kAll);
  EXPECT_EQ(admission.job.spec.run_policy.ttl_seconds_after_finished, 60);
  EXPECT_TRUE(admission.job.spec.replicas.empty());
}

TEST(PackJob, LeavesOtherObjectsAsTheyAre) {
  const client::Object lease(std::make_shared<const CustomResource>(
      *objects::ParseCustomResource({{"kind", "Lease"}, {"metadata", {{"name", "a"}}}})));
  EXPECT_EQ(PackIfJob(lease), lease);
  const client::Object pod(std::make_shared<const objects::Pod>());
  EXPECT_EQ(PackIfJob(pod), pod);
  EXPECT_EQ(AsPackedJob(pod), nullptr);
  const client::Object job(std::make_shared<const CustomResource>(JobIn("Created")));
  const client::Object packed = PackIfJob(job);
  EXPECT_NE(AsPackedJob(packed), nullptr);
  EXPECT_EQ(PackIfJob(packed), packed);
  EXPECT_EQ(client::MetadataOf(packed).name, "mnist");
}

}  // namespace
}  // namespace tfjob::control
