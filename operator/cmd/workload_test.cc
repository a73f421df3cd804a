#include "operator/cmd/workload.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/cmd/trainer.h"

namespace tfjob::cmd {
namespace {

// A job with one worker; `extra` is put under the pod's spec, `container` under the container.
std::string Manifest(const std::string& extra = "",
                     const std::string& container = "command: [train]") {
  return StrCat(R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: tensorflow
              image: any
              )",
                container, "\n          ", extra, "\n");
}

constexpr char kSettings[] = R"(
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  other.txt: "{not: [yaml"
  training.yaml: |
    model_dir: /model/run
)";

class WorkloadTest : public ::testing::Test {
 protected:
  StatusOr<Workload> Make(const std::string& text) {
    return MakeWorkload(manifest::CheckManifest(text, "job.yaml"), options_, "job.yaml");
  }
  std::string Refusal(const std::string& text) { return std::string(Message(Make(text).status())); }

  process::Options options_;
};

TEST_F(WorkloadTest, FillsNamespaceAndDefaults) {
  const auto workload = Make(Manifest() + kSettings);
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_EQ(workload->jobs.size(), 1u);
  EXPECT_EQ((*workload->jobs[0].object)["metadata"]["namespace"], "default");
  EXPECT_EQ(workload->jobs[0].job.spec.replicas.at(api::ReplicaType::kWorker).replicas, 1);
  EXPECT_EQ((*workload->config_maps[0])["metadata"]["namespace"], "default");
}

TEST_F(WorkloadTest, FindsTheModelFolderOnThisMachine) {
  const std::string volumes =
      "volumes: [{name: c, configMap: {name: settings}}, {name: m, hostPath: {path: /var/models}}]";
  const std::string mounts =
      "command: [train]\n              volumeMounts: [{name: c, mountPath: /c}, {name: m, "
      "mountPath: /model}]";
  const auto workload = Make(Manifest(volumes, mounts) + kSettings);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->jobs[0].model_dir, "/var/models/run");
}

TEST_F(WorkloadTest, RefusesWhatCanNeverRunHere) {
  EXPECT_EQ(Refusal("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"),
            "job.yaml: there is no TFJob in it");
  EXPECT_NE(
      Refusal(Manifest("", "args: [x]")).find("the image \"any\" is not a program of this machine"),
      std::string::npos);
  std::string suspended = Manifest();
  suspended.insert(suspended.find("  tfReplicaSpecs"),
                   "  runPolicy: {suspend: true, managedBy: kueue.x-k8s.io/multikueue}\n");
  const std::string both = Refusal(suspended);
  EXPECT_NE(both.find("job.yaml (TFJob \"mnist\"): spec.runPolicy.suspend: "), std::string::npos)
      << both;
  EXPECT_NE(both.find("spec.runPolicy.managedBy: "), std::string::npos) << both;
  EXPECT_EQ(Refusal(Manifest("volumes: [{name: c, configMap: {name: settings}}]")),
            "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs.Worker.template.spec.volumes[0]: "
            "there is no ConfigMap "
            "\"settings\" in namespace \"default\" of this file");
}

TEST_F(WorkloadTest, WarnsOfWhatHasNoEffect) {
  const auto workload = Make(Manifest("nodeSelector: {a: b}") +
                             "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_EQ(workload->warnings.size(), 2u);
  EXPECT_NE(workload->warnings[0].find("spec.nodeSelector has no effect"), std::string::npos);
  EXPECT_EQ(workload->warnings[1],
            "job.yaml, document 2 (Secret \"s\"): left out: only TFJobs and ConfigMaps count on "
            "this machine");
}

TEST(LocalImagesTest, NamesWhatIsWrong) {
  EXPECT_EQ(Message(LocalImages("", {"nonsense"}).status()),
            "--image: expected REPOSITORY=PROGRAM, got \"nonsense\"");
  EXPECT_EQ(Message(LocalImages("/nowhere/trainer", {}).status()),
            "/nowhere/trainer: expected a program, and it cannot be executed");
  const auto images = LocalImages("/bin/sh", {"mine/image=/bin/ls"});
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ((*images)[0].repository, "mine/image");
  EXPECT_EQ((*images)[1].repository, "tfjob/trainer");
}

}  // namespace
}  // namespace tfjob::cmd
