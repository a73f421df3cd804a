#include "operator/manifest/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tfjob::manifest {
namespace {

// Returns a YAML document with a job. The job is valid unless the arguments make it invalid.
std::string Job(std::string_view name, std::string_view replica_specs) {
  return StrCat("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: ", name,
                "}\nspec:\n  tfReplicaSpecs:\n", replica_specs);
}

std::string Replica(std::string_view type, std::string_view replicas = "1",
                    std::string_view container = "tensorflow") {
  return StrCat("    ", type, ":\n      replicas: ", replicas,
                "\n      template: {spec: {containers: [{name: ", container, ", image: i}]}}\n");
}

std::string ErrorsOf(std::string_view text) {
  std::string lines;
  for (const std::string& line : CheckManifest(text, "job.yaml").errors) {
    lines += (lines.empty() ? "" : "\n") + line;
  }
  return lines;
}

TEST(CheckManifest, AcceptsAPlainJob) {
  const ManifestReport report =
      CheckManifest(Job("mnist", Replica("Worker", "2") + Replica("PS")), "job.yaml");
  EXPECT_TRUE(report.ok());
  ASSERT_EQ(report.objects.size(), 1u);
  EXPECT_EQ(report.objects[0].job->metadata.name, "mnist");
  EXPECT_EQ(report.objects[0].where, "job.yaml (TFJob \"mnist\")");
  EXPECT_EQ(Print(report, "job.yaml"), "job.yaml: valid, 1 TFJob\n");
}

// The BadInput tests check which errors an invalid manifest yields.
TEST(BadInput, NotYaml) {
  EXPECT_EQ(ErrorsOf("a: [1, 2\nb: }"),
            "job.yaml: line 2, column 2: end of sequence flow not found");
  EXPECT_EQ(ErrorsOf("a: \xff"), "job.yaml: line 1: the text is not UTF-8");
  EXPECT_EQ(ErrorsOf(""), "job.yaml: the text contains no document");
  EXPECT_EQ(ErrorsOf("just words"),
            "job.yaml: the document: expected an object with apiVersion, kind and metadata, got "
            "\"just words\"");
}

TEST(BadInput, WrongTypes) {
  EXPECT_EQ(ErrorsOf(Job("mnist", Replica("Worker", "two"))),
            "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs.Worker.replicas: expected an integer, "
            "got \"two\"");
}

TEST(BadInput, UnknownReplicaType) {
  EXPECT_EQ(
      ErrorsOf(Job("mnist", Replica("Workers"))),
      "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs.Workers: unknown replica type; did you "
      "mean \"Worker\"? (the types are Chief, Evaluator, Master, PS, Worker)");
}

TEST(BadInput, TwoKeysThatDifferInCase) {
  EXPECT_EQ(ErrorsOf(Job("mnist", Replica("Worker") + Replica("worker"))),
            "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs: the keys \"Worker\" and \"worker\" "
            "differ only in case; keep one");
  EXPECT_EQ(ErrorsOf(Job("mnist", Replica("Worker") + Replica("Worker"))),
            "job.yaml: line 9, column 5: duplicate key \"Worker\"");
}

TEST(BadInput, NegativeReplicas) {
  EXPECT_EQ(
      ErrorsOf(Job("mnist", Replica("Worker", "-1"))),
      "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs.Worker.replicas: expected 0 or more, got "
      "-1");
}

TEST(BadInput, NoContainerTensorflow) {
  EXPECT_EQ(
      ErrorsOf(Job("mnist", Replica("Worker", "1", "main"))),
      "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs.Worker.template.spec.containers: one of "
      "the containers must be named \"tensorflow\"");
}

TEST(BadInput, NamesWhoseServicesWouldBeTooLong) {
  const std::string name(60, 'm');
  EXPECT_EQ(ErrorsOf(Job(name, Replica("PS"))),
            "job.yaml (TFJob \"" + name + "\"): metadata.name: the service \"" + name +
                "-ps-0\" would have a name of 65 characters, and 63 are allowed: shorten the job's "
                "name to 58 characters or fewer");
}

TEST(BadInput, ChiefAndMasterTogether) {
  EXPECT_EQ(ErrorsOf(Job("mnist", Replica("chief") + Replica("MASTER"))),
            "job.yaml (TFJob \"mnist\"): spec.tfReplicaSpecs: Chief and Master exclude each other; "
            "keep one");
}

TEST(CheckManifest, CollectsTheErrorsOfAllDocuments) {
  const std::string text = Job("one", Replica("Worker", "-1")) + "---\n" +
                           Job("two", Replica("Worker", "x")) + "---\nkind: ConfigMap\n---\n" +
                           Job("three", Replica("Worker"));
  const ManifestReport report = CheckManifest(text, "job.yaml");
  EXPECT_EQ(Print(report, "job.yaml"),
            "error: job.yaml, document 1 (TFJob \"one\"): spec.tfReplicaSpecs.Worker.replicas: "
            "expected 0 or more, got -1\n"
            "error: job.yaml, document 2 (TFJob \"two\"): spec.tfReplicaSpecs.Worker.replicas: "
            "expected an integer, got \"x\"\n"
            "error: job.yaml, document 3: apiVersion: expected a string, but it is missing\n"
            "job.yaml: 3 errors\n");
}

TEST(CheckManifest, AFieldThatCannotBeReadHidesNoOther) {
  const std::string text = Job("mnist", Replica("Worker", "two", "main") + Replica("PS", "-1")) +
                           "  runPolicy: {backoffLimit: -3, suspend: 7}\n";
  const std::string job = "job.yaml (TFJob \"mnist\"): spec.";
  EXPECT_EQ(ErrorsOf(text),
            job + "runPolicy.suspend: expected true or false, got 7\n" + job +
                "tfReplicaSpecs.Worker.replicas: expected an integer, got \"two\"\n" + job +
                "runPolicy.backoffLimit: expected 0 or more, got -3\n" + job +
                "tfReplicaSpecs.PS.replicas: expected 0 or more, got -1\n" + job +
                "tfReplicaSpecs.Worker.template.spec.containers: one of the containers must be "
                "named \"tensorflow\"");
}

TEST(CheckManifest, WhatFollowsFromAnUnreadableFieldIsNotTold) {
  const std::string head = "apiVersion: kubeflow.org/v1\nkind: TFJob\n";
  EXPECT_EQ(ErrorsOf(head + "metadata: {name: 7}\nspec: 8\n"),
            "job.yaml (TFJob): metadata.name: expected a string, got 7\n"
            "job.yaml (TFJob): spec: expected an object, got 8");
}

TEST(CheckManifest, RefusesOtherKindsOfJobs) {
  EXPECT_EQ(ErrorsOf("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: p}\n"),
            "job.yaml (PyTorchJob \"p\"): kind: expected \"TFJob\", got \"PyTorchJob\": this "
            "operator runs TFJobs only");
  EXPECT_EQ(ErrorsOf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\n"), "");
}

TEST(CheckManifest, NamesTheNamespace) {
  EXPECT_EQ(ErrorsOf("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: kubeflow.org/v1, kind: "
                     "TFJob, metadata: {name: a, namespace: team}, spec: {}}\n"),
            "job.yaml, item 1 (TFJob \"team/a\"): spec.tfReplicaSpecs: at least one replica type "
            "is required");
}

TEST(CheckManifest, PrintsWarnings) {
  const std::string text =
      Job("mnist", Replica("Worker") + Replica("Chief", "2")) + "  ttlSecondsAfterFinished: 5\n";
  const ManifestReport report = CheckManifest(text, "-");
  EXPECT_EQ(Print(report, "-"),
            "warning: - (TFJob \"mnist\"): spec.ttlSecondsAfterFinished: this field has no effect "
            "here; move it to spec.runPolicy.ttlSecondsAfterFinished\n"
            "warning: - (TFJob \"mnist\"): spec.tfReplicaSpecs.Chief.replicas: 2 replicas of Chief "
            "are all chiefs, and all of them must succeed; usually there is 1\n"
            "-: valid, 1 TFJob\n");
}

TEST(ParseManifest, KeepsOtherObjectsAndUnrollsLists) {
  const std::string text =
      "apiVersion: v1\nkind: List\nitems:\n"
      "- {apiVersion: v1, kind: ConfigMap, metadata: {name: data}, data: {a: b}}\n"
      "- {apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: one}, spec: {}}\n---\n" +
      Job("two", Replica("Worker"));
  const auto objects = ParseManifest(text, "job.yaml");
  ASSERT_TRUE(objects.ok()) << objects.status();
  ASSERT_EQ(objects->size(), 3u);
  EXPECT_EQ((*objects)[0].kind, "ConfigMap");
  EXPECT_FALSE((*objects)[0].job.has_value());
  EXPECT_EQ((*(*objects)[0].object)["data"]["a"], "b");
  EXPECT_EQ((*objects)[1].where, "job.yaml, document 1, item 2 (TFJob \"one\")");
  EXPECT_EQ((*objects)[2].job->metadata.name, "two");
}

TEST(ParseManifest, ReadsJson) {
  const auto objects = ParseManifest(
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"j"},"spec":{}})", "j");
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ((*objects)[0].job->metadata.name, "j");
}

TEST(ParseManifest, RefusesBrokenLists) {
  const auto error = [](std::string_view text) {
    return std::string(Message(ParseManifest(text, "job.yaml").status()));
  };
  EXPECT_EQ(error("kind: List\nitems: 7"), "job.yaml: items: expected a list, got 7");
  EXPECT_EQ(
      error("kind: List\nitems: [null, 3]"),
      "job.yaml, item 1: the document: expected an object with apiVersion, kind and metadata, "
      "but it is missing\n"
      "job.yaml, item 2: the document: expected an object with apiVersion, kind and metadata, "
      "got 3");
  EXPECT_EQ(error("apiVersion: v1\nkind: Secret\nmetadata: {name: 7}"),
            "job.yaml (Secret): metadata.name: expected a string, got 7");
}

TEST(ParseManifest, RefusesTheSameObjectTwice) {
  const std::string job = Job("mnist", Replica("Worker"));
  EXPECT_EQ(Message(ParseManifest(job + "---\n" + job, "job.yaml").status()),
            "job.yaml, document 2 (TFJob \"mnist\"): metadata.name: the same object is already "
            "in job.yaml, document 1");
}

}  // namespace
}  // namespace tfjob::manifest
