#include "operator/local/run/workload.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/local/run/field_warnings.h"
#include "operator/local/run/local_images.h"

namespace tfjob::local {
namespace {

// Returns a job with one worker. `extra` is added to the pod's spec, and `container` to the
// container.
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

  process::RunnerOptions options_;
};

TEST_F(WorkloadTest, FillsNamespaceAndDefaults) {
  const auto workload = Make(Manifest() + kSettings);
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_EQ(workload->jobs.size(), 1u);
  EXPECT_EQ((*workload->jobs[0].object)["metadata"]["namespace"], "default");
  EXPECT_EQ(workload->jobs[0].job.spec.replicas.at(api::ReplicaType::kWorker).replicas, 1);
  EXPECT_EQ((*workload->config_maps[0])["metadata"]["namespace"], "default");
}

TEST_F(WorkloadTest, SaysThatNoNetworkPolicyProtectsTheTasks) {
  for (const char* value : {"true", "false"}) {
    std::string text = Manifest("", "command: [train]");
    const std::string plain = "{name: mnist}";
    text.replace(text.find(plain), plain.size(),
                 StrCat("{name: mnist, annotations: {tfjob.dev/network-policy: \"", value, "\"}}"));
    const auto workload = Make(text);
    ASSERT_TRUE(workload.ok()) << workload.status();
    std::vector<std::string> expected;
    if (value == std::string("true")) {
      expected = {
          "job.yaml (TFJob \"mnist\"): metadata.annotations[tfjob.dev/network-policy]: has no "
          "effect here: no NetworkPolicy protects the tasks' ports on 127.0.0.1"};
    }
    EXPECT_EQ(workload->warnings, expected);
  }
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

TEST_F(WorkloadTest, FindsTheModelFolderOnlyWhereItOutlivesTheRun) {
  options_.claims_dir = "/home/me/claims";
  const std::string config = "{name: c, configMap: {name: settings}}";
  const std::string host = "{name: m, hostPath: {path: /var}}";
  const std::string claim = "{name: p, persistentVolumeClaim: {claimName: models}}";
  const struct {
    std::string volumes;
    std::string mounts;
    const char* model_dir;
  } cases[] = {
      {config + ", " + host, "{name: m, mountPath: /model}", "/var/run"},
      {config + ", " + host, "{name: m, mountPath: /model/run}", "/var"},
      {config + ", " + host, "{name: m, mountPath: /model, subPath: mine}", "/var/mine/run"},
      {config + ", " + host, "{name: m, mountPath: /mod}", ""},
      {config + ", {name: m, emptyDir: {}}", "{name: m, mountPath: /model}", ""},
      {host, "{name: m, mountPath: /model}", ""},
      {config + ", " + claim, "{name: p, mountPath: /model}", "/home/me/claims/default/models/run"},
      // The innermost mount contains the folder, regardless of the order of the mounts.
      {config + ", " + host + ", " + claim,
       "{name: m, mountPath: /model}, {name: p, mountPath: /model/run}",
       "/home/me/claims/default/models"},
      {config + ", " + host + ", " + claim,
       "{name: p, mountPath: /model/run}, {name: m, mountPath: /model}",
       "/home/me/claims/default/models"},
      {config + ", " + host + ", {name: e, emptyDir: {}}",
       "{name: m, mountPath: /model}, {name: e, mountPath: /model/run}", ""},
  };
  for (const auto& each : cases) {
    const std::string mounts =
        "command: [train]\n              volumeMounts: [" + each.mounts + "]";
    const auto workload = Make(Manifest("volumes: [" + each.volumes + "]", mounts) + kSettings);
    ASSERT_TRUE(workload.ok()) << workload.status();
    EXPECT_EQ(workload->jobs[0].model_dir, each.model_dir) << each.volumes << each.mounts;
  }
}

TEST_F(WorkloadTest, RefusesWhatCanNeverRunHere) {
  EXPECT_EQ(Refusal("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"),
            "job.yaml: contains no TFJob");
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

struct Refused {
  const char* what;
  std::string text;
  std::string error;
};

TEST_F(WorkloadTest, RefusesWhatTheStoreWouldRefuseLater) {
  const std::string map = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: ";
  std::string labels = Manifest();
  labels.insert(labels.find("        spec:"), "        metadata: {labels: {team: \"a team\"}}\n");
  std::string job_labels = Manifest();
  job_labels.replace(job_labels.find("{name: mnist}"), 13, "{name: mnist, labels: {-: x}}");
  std::string other_case = Manifest();
  other_case.replace(other_case.find("TFJob"), 5, "TFjob");
  const std::vector<Refused> cases = {
      {"a ConfigMap's name", Manifest() + map + "{name: A}\n",
       "job.yaml, document 2 (ConfigMap \"A\"): ConfigMap \"A\" is invalid: metadata.name: "},
      {"no name", Manifest() + map + "{generateName: a}\n",
       "job.yaml, document 2 (ConfigMap): ConfigMap \"\" is invalid: metadata.name: "},
      {"a namespace", Manifest() + map + "{name: a, namespace: A_b}\n", "metadata.namespace: "},
      {"the same in the namespace by default",
       Manifest() + map + "{name: a}\n" + map + "{name: a, namespace: default}\n",
       "job.yaml, document 3 (ConfigMap \"default/a\"): metadata.name: job.yaml, document 2 "
       "(ConfigMap "
       "\"a\") is the same object, in namespace \"default\""},
      {"a job's labels", job_labels,
       "job.yaml (TFJob \"mnist\"): TFJob \"mnist\" is invalid: "
       "metadata.labels: "},
      {"a template's labels", labels,
       "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs.Worker.template: Pod \"mnist-worker-0\" is "
       "invalid: metadata.labels[team]: "},
      {"a kind in other letters", other_case,
       "job.yaml (TFjob \"mnist\"): kind: expected \"TFJob\", got \"TFjob\""},
      {"another version",
       Manifest() + "\n---\napiVersion: v2\nkind: ConfigMap\nmetadata: {name: a}\n",
       "job.yaml, document 2 (ConfigMap \"a\"): apiVersion: expected \"v1\", got \"v2\""},
      {"another kind of job",
       Manifest() + "\n---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: p}\n",
       "job.yaml, document 2 (PyTorchJob \"p\"): kind: expected \"TFJob\", got \"PyTorchJob\""}};
  for (const Refused& refused : cases) {
    SCOPED_TRACE(refused.what);
    const std::string error = Refusal(refused.text);
    EXPECT_NE(error.find(refused.error), std::string::npos) << error;
  }
}

TEST_F(WorkloadTest, WarnsOfWhatHasNoEffect) {
  const auto workload = Make(Manifest("nodeSelector: {a: b}") +
                             "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_EQ(workload->warnings.size(), 2u);
  EXPECT_NE(workload->warnings[0].find("spec.nodeSelector has no effect"), std::string::npos);
  EXPECT_EQ(workload->warnings[1],
            "job.yaml, document 2 (Secret \"s\"): skipped: only TFJobs, ConfigMaps and "
            "PersistentVolumeClaims are used on this machine");
}

// Either field would prevent the run from ending: the store would delete an object with an owner at
// once, and would keep an object with finalizers.
TEST_F(WorkloadTest, LeavesOutOwnersAndFinalizers) {
  const std::string foreign =
      "ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}], finalizers: [a/b]";
  std::string text = Manifest();
  text.replace(text.find("{name: mnist}"), 13, StrCat("{name: mnist, ", foreign, "}"));
  text.insert(text.find("        spec:"), "        metadata: {finalizers: [c/d]}\n");
  const auto workload = Make(
      StrCat(text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, ", foreign, "}\n"));
  ASSERT_TRUE(workload.ok()) << workload.status();
  const std::string owners =
      "metadata.ownerReferences: left out: the owners are not part of this run, so the object "
      "would be deleted";
  const std::string finalizers =
      "finalizers: left out: nothing on this machine would remove them, so the run could not end";
  const std::string job = "job.yaml, document 1 (TFJob \"mnist\"): ";
  const std::string map = "job.yaml, document 2 (ConfigMap \"m\"): ";
  EXPECT_EQ(
      workload->warnings,
      (std::vector<std::string>{job + owners, job + "metadata." + finalizers,
                                job + "spec.tfReplicaSpecs.Worker.template.metadata." + finalizers,
                                map + owners, map + "metadata." + finalizers}));
  for (const Json* object : {workload->jobs[0].object.get(), workload->config_maps[0].get()}) {
    EXPECT_EQ(object->dump().find("ownerReferences"), std::string::npos);
    EXPECT_EQ(object->dump().find("finalizers"), std::string::npos);
  }
}

TEST_F(WorkloadTest, SaysNothingOfEmptyOwnersAndFinalizers) {
  std::string text = Manifest();
  text.replace(text.find("{name: mnist}"), 13,
               "{name: mnist, ownerReferences: [], finalizers: []}");
  const auto workload = Make(text);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->warnings, std::vector<std::string>());
}

constexpr char kClaim[] = R"(
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: models
  annotations: {tfjob.dev/local-path: /srv/models}
)";

TEST_F(WorkloadTest, AClaimMayNameItsFolder) {
  const std::string volumes =
      "volumes: [{name: c, configMap: {name: settings}}, "
      "{name: m, persistentVolumeClaim: {claimName: models}}]";
  const std::string mounts =
      "command: [train]\n              volumeMounts: [{name: m, mountPath: /model}]";
  const auto workload = Make(Manifest(volumes, mounts) + kSettings + kClaim);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->claim_folders,
            (std::map<std::string, std::string>{{"default/models", "/srv/models"}}));
  EXPECT_EQ(workload->jobs[0].model_dir, "/srv/models/run");
  EXPECT_EQ(workload->warnings, std::vector<std::string>());
  const auto undeclared = Make(Manifest(volumes, mounts) + kSettings);
  ASSERT_TRUE(undeclared.ok()) << undeclared.status();
  EXPECT_EQ(undeclared->warnings.size(), 1u);

  std::string relative = kClaim, other_case = kClaim;
  relative.replace(relative.find("/srv"), 1, "");
  other_case.replace(other_case.find("Volume"), 1, "v");
  EXPECT_EQ(Refusal(Manifest() + relative),
            "job.yaml, document 2 (PersistentVolumeClaim \"models\"): "
            "metadata.annotations[tfjob.dev/local-path]: expected an absolute path, got "
            "\"srv/models\"");
  EXPECT_EQ(Refusal(Manifest() + other_case),
            "job.yaml, document 2 (PersistentvolumeClaim \"models\"): kind: expected "
            "\"PersistentVolumeClaim\", got \"PersistentvolumeClaim\"");
}

TEST_F(WorkloadTest, WarnsOfSecurityContextsThatGrantRights) {
  const struct {
    const char* context;
    size_t warnings;
  } cases[] = {
      {"{}", 0},
      {"{runAsNonRoot: true, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}", 0},
      {"{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}", 0},
      {"{allowPrivilegeEscalation: true}", 1},
      {"{capabilities: {drop: [ALL], add: [NET_ADMIN]}}", 1},
      {"{privileged: true}", 1},
      {"{runAsUser: 1000}", 1},
  };
  for (const auto& [context, warnings] : cases) {
    const std::string text = StrCat("securityContext: ", context);
    for (const std::string& manifest :
         {Manifest(text), Manifest("", "command: [train]\n              " + text)}) {
      const auto workload = Make(manifest);
      ASSERT_TRUE(workload.ok()) << workload.status();
      EXPECT_EQ(workload->warnings.size(), warnings) << context;
    }
  }
}

TEST(FieldWarningsTest, MergesFieldsOfOneNameAndConsequence) {
  FieldWarnings warnings;
  warnings.Add("a", "spec.PS.tty has no effect");
  warnings.Add("a", "spec.Worker.tty has no effect");
  warnings.Add("a", "spec.Worker.tty has no effect");
  warnings.Add("a", "spec.Worker.stdin has no effect");
  warnings.Add("a", "spec.Chief.tty has no effect");
  warnings.Add("b", "spec.PS.tty has no effect");
  warnings.Add("b", "spec.Worker.tty has no effect");
  EXPECT_EQ(warnings.Lines(),
            (std::vector<std::string>{"a: spec.PS.tty has no effect (and in 2 other places)",
                                      "a: spec.Worker.stdin has no effect",
                                      "b: spec.PS.tty has no effect (and in 1 other place)"}));
}

TEST(LocalImagesTest, NamesWhatIsWrong) {
  EXPECT_EQ(Message(LocalImages("", {"nonsense"}).status()),
            "--image: expected REPOSITORY=PROGRAM, got \"nonsense\"");
  EXPECT_EQ(Message(LocalImages("/nowhere/trainer", {}).status()),
            "/nowhere/trainer: expected a program, but it cannot be executed");
  const auto images = LocalImages("/bin/sh", {"mine/image=/bin/ls"});
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ((*images)[0].repository, "mine/image");
  EXPECT_EQ((*images)[1].repository, "tfjob/trainer");
}

}  // namespace
}  // namespace tfjob::local
