#include "operator/manifest/tfjob_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tfjob::manifest {
namespace {

Json Parse(std::string_view text) {
  return *ParseJson(text, "test");
}

// Returns a job with this text as its spec.
Json WithSpec(std::string_view spec) {
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", {{"name", "mnist"}}},
          {"spec", Parse(spec)}};
}

std::string ErrorsOf(const Json& object) {
  return std::string(Message(ParseTFJob(object).status()));
}

std::string ErrorsOfSpec(std::string_view spec) {
  return ErrorsOf(WithSpec(spec));
}

std::string WarningsOf(const Json& object) {
  std::vector<api::FieldIssue> warnings;
  (void)ParseTFJob(object, &warnings);
  std::string text;
  for (const api::FieldIssue& issue : warnings) text += api::ToString(issue) + "\n";
  return text;
}

constexpr char kWhole[] = R"({
  "apiVersion":"kubeflow.org/v1","kind":"TFJob",
  "metadata":{"name":"mnist","namespace":"ns","uid":"u","labels":{"a":"b"},
              "creationTimestamp":"2026-11-21T09:30:00Z"},
  "spec":{
    "runPolicy":{"cleanPodPolicy":"Running","ttlSecondsAfterFinished":60,"activeDeadlineSeconds":3600,
      "backoffLimit":3,"suspend":true,"managedBy":"kubeflow.org/training-operator",
      "restartScope":"Job",
      "schedulingPolicy":{"minAvailable":2,"queue":"q","minResources":{"cpu":"4","memory":"1Gi"},
                          "priorityClass":"high","scheduleTimeoutSeconds":10}},
    "successPolicy":"AllWorkers","enableDynamicWorker":true,
    "tfReplicaSpecs":{
      "Worker":{"replicas":2,"restartPolicy":"ExitCode",
        "template":{"metadata":{"labels":{"x":"y"}},"spec":{"futureField":[1,{"deep":null}],
          "containers":[{"name":"tensorflow","image":"i"}]}}},
      "PS":{"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}}},
  "status":{
    "conditions":[
      {"type":"Created","status":"True","reason":"TFJobCreated","message":"m",
       "lastUpdateTime":"2026-11-21T09:30:01Z","lastTransitionTime":"2026-11-21T09:30:00Z"},
      {"type":"Running","status":"False"}],
    "replicaStatuses":{"PS":{},"Worker":{"active":1,"succeeded":2,"failed":3,"restarts":4,
                       "completedIndexes":"0-3,7","selector":"k=v"}},
    "startTime":"2026-11-21T09:30:02Z","completionTime":"2026-11-21T09:30:03Z",
    "lastReconcileTime":"2026-11-21T09:30:04Z","attempt":5}})";

TEST(ParseTFJob, WhatIsReadIsPrintedAgain) {
  const Json json = Parse(kWhole);
  std::vector<api::FieldIssue> warnings;
  const StatusOr<api::TFJob> job = ParseTFJob(json, &warnings);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(ToJson(*job), json);
  EXPECT_EQ(*ParseTFJob(ToJson(*job)), *job);
}

TEST(ParseTFJob, ReadsEveryField) {
  const StatusOr<api::TFJob> job = ParseTFJob(Parse(kWhole));
  ASSERT_TRUE(job.ok()) << job.status();
  const api::RunPolicy& policy = job->spec.run_policy;
  EXPECT_EQ(job->key(), "ns/mnist");
  EXPECT_EQ(policy.clean_pod_policy, api::CleanPodPolicy::kRunning);
  EXPECT_EQ(policy.ttl_seconds_after_finished, 60);
  EXPECT_EQ(policy.active_deadline_seconds, 3600);
  EXPECT_EQ(policy.backoff_limit, 3);
  EXPECT_TRUE(policy.suspend);
  EXPECT_EQ(policy.restart_scope, api::RestartScope::kJob);
  EXPECT_EQ(policy.scheduling_policy->min_available, 2);
  EXPECT_EQ(policy.scheduling_policy->min_resources.at("memory"), "1Gi");
  EXPECT_EQ(job->spec.success_policy, api::SuccessPolicy::kAllWorkers);
  EXPECT_TRUE(job->spec.enable_dynamic_worker);
  const api::ReplicaSpec& worker = job->spec.replicas.at(api::ReplicaType::kWorker);
  EXPECT_EQ(worker.replicas, 2);
  EXPECT_EQ(worker.restart_policy, api::RestartPolicy::kExitCode);
  EXPECT_FALSE(job->spec.replicas.at(api::ReplicaType::kPS).replicas.has_value());
  EXPECT_EQ(job->status.conditions.size(), 2u);
  EXPECT_EQ(job->status.replica_statuses.at(api::ReplicaType::kWorker).restarts, 4);
  EXPECT_EQ(job->status.attempt, 5);
}

TEST(ParseTFJob, KeysOfAnyCaseAreTheSameTypeAndEmptyWordsTheirDefaults) {
  const StatusOr<api::TFJob> job = ParseTFJob(WithSpec(
      R"({"tfReplicaSpecs":{"wORKER":{"restartPolicy":"","template":{}}},"successPolicy":"",
          "runPolicy":{"cleanPodPolicy":"","schedulingPolicy":{"minResources":{"cpu":4}}}})"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.replicas.at(api::ReplicaType::kWorker).restart_policy, std::nullopt);
  EXPECT_EQ(job->spec.run_policy.clean_pod_policy, api::CleanPodPolicy::kAll);
  EXPECT_EQ(job->spec.run_policy.scheduling_policy->min_resources.at("cpu"), "4");
  EXPECT_EQ(*ParseTFJob(ToJson(*job)), *job);
}

TEST(ParseTFJob, NullsAreAbsent) {
  const StatusOr<api::TFJob> job = ParseTFJob(WithSpec(
      R"({"runPolicy":null,"successPolicy":null,"enableDynamicWorker":null,
          "tfReplicaSpecs":{"Worker":{"replicas":null,"restartPolicy":null,"template":null}}})"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(PrintJson(*job->spec.replicas.at(api::ReplicaType::kWorker).pod_template), "{}");
}

struct Bad {
  const char* spec;
  const char* errors;
};

TEST(ParseTFJob, NamesWhatIsWrongAndWhere) {
  const Bad cases[] = {
      {"null", "spec: expected an object, but it is missing"},
      {"[]", "spec: expected an object, got a list"},
      {R"({"tfReplicaSpecs":[]})", "spec.tfReplicaSpecs: expected an object, got a list"},
      {R"({"tfReplicaSpecs":{"Wroker":{}}})",
       "spec.tfReplicaSpecs.Wroker: unknown replica type; did you mean \"Worker\"? "
       "(the types are Chief, Evaluator, Master, PS, Worker)"},
      {R"({"tfReplicaSpecs":{"Launcher":{}}})",
       "spec.tfReplicaSpecs.Launcher: unknown replica type "
       "(the types are Chief, Evaluator, Master, PS, Worker)"},
      {R"({"tfReplicaSpecs":{"worker":{},"Worker":{}}})",
       "spec.tfReplicaSpecs: the keys \"Worker\" and \"worker\" differ only in case; keep one"},
      {R"({"tfReplicaSpecs":{"Worker":null}})",
       "spec.tfReplicaSpecs.Worker: expected an object, but it is missing"},
      {R"({"tfReplicaSpecs":{"Worker":{"replicas":"2"}}})",
       "spec.tfReplicaSpecs.Worker.replicas: expected an integer, got \"2\""},
      {R"({"tfReplicaSpecs":{"Worker":{"replicas":1.5}}})",
       "spec.tfReplicaSpecs.Worker.replicas: expected an integer, got 1.5"},
      {R"({"tfReplicaSpecs":{"Worker":{"replicas":3000000000}}})",
       "spec.tfReplicaSpecs.Worker.replicas: expected an integer of 32 bits, got 3000000000"},
      {R"({"tfReplicaSpecs":{"Worker":{"template":"x"}}})",
       "spec.tfReplicaSpecs.Worker.template: expected an object, got \"x\""},
      {R"({"tfReplicaSpecs":{"Worker":{"restartPolicy":"never"}}})",
       "spec.tfReplicaSpecs.Worker.restartPolicy: expected one of \"Always\", \"OnFailure\", "
       "\"Never\", \"ExitCode\", got \"never\"; did you mean \"Never\"?"},
      {R"({"runPolicy":{"cleanPodPolicy":"Some"}})",
       "spec.runPolicy.cleanPodPolicy: expected one of \"All\", \"Running\", \"None\", got "
       "\"Some\""},
      {R"({"runPolicy":{"restartScope":"Pod"}})",
       "spec.runPolicy.restartScope: expected one of \"Replica\", \"Job\", got \"Pod\""},
      {R"({"runPolicy":{"suspend":"yes","backoffLimit":true}})",
       "spec.runPolicy.backoffLimit: expected an integer, got true\n"
       "spec.runPolicy.suspend: expected true or false, got \"yes\""},
      {R"({"runPolicy":{"schedulingPolicy":{"minResources":{"cpu":[]}}}})",
       "spec.runPolicy.schedulingPolicy.minResources.cpu: expected a quantity such as \"500m\" or "
       "4, "
       "got a list"},
      {R"({"successPolicy":"AnyWorker"})",
       "spec.successPolicy: expected one of \"\", \"AllWorkers\", got \"AnyWorker\"; did you mean "
       "\"AllWorkers\"?"},
      {R"({"enableDynamicWorker":1})", "spec.enableDynamicWorker: expected true or false, got 1"},
  };
  for (const Bad& bad : cases) EXPECT_EQ(ErrorsOfSpec(bad.spec), bad.errors);
}

TEST(ParseTFJob, CollectsEveryErrorSortedByPath) {
  Json json = WithSpec(R"({"tfReplicaSpecs":{"Worker":{"replicas":"x","restartPolicy":7},
                                             "PS":{"replicas":[]}}})");
  json["apiVersion"] = "kubeflow.org/v1beta2";
  json.erase("kind");
  json["metadata"] = {{"name", 7}, {"labels", {{"a", 1}}}};
  EXPECT_EQ(ErrorsOf(json),
            "apiVersion: expected \"kubeflow.org/v1\", got \"kubeflow.org/v1beta2\"\n"
            "kind: expected \"TFJob\", but it is missing\n"
            "metadata.labels.a: expected a string, got 1\n"
            "metadata.name: expected a string, got 7\n"
            "spec.tfReplicaSpecs.PS.replicas: expected an integer, got a list\n"
            "spec.tfReplicaSpecs.Worker.replicas: expected an integer, got \"x\"\n"
            "spec.tfReplicaSpecs.Worker.restartPolicy: expected a string, got 7");
  EXPECT_EQ(ErrorsOf(Json::array()), "the document: expected a TFJob object, got a list");
}

TEST(ParseTFJob, WarnsOfUnknownAndMisplacedFields) {
  Json json = WithSpec(R"({"tfReplicaSpec":{},"cleanPodPolicy":"None","backoffLimit":3,
      "runPolicy":{"ttlSecondAfterFinished":1,"xyz":1,"schedulingPolicy":{"minAvailabel":1}},
      "tfReplicaSpecs":{"PS":{"tempalte":{},"template":{"unknown":1,"spec":{"unknown":2}}}}})");
  json["metadata"]["label"] = "x";
  const std::string unknown = ": this field is unknown and has no effect";
  EXPECT_EQ(WarningsOf(json),
            "metadata.label" + unknown + "; did you mean \"labels\"?\n" +
                "spec.backoffLimit: this field has no effect here; move it to "
                "spec.runPolicy.backoffLimit\n"
                "spec.cleanPodPolicy: this field has no effect here; move it to "
                "spec.runPolicy.cleanPodPolicy\n" +
                "spec.runPolicy.schedulingPolicy.minAvailabel" + unknown +
                "; did you mean \"minAvailable\"?\n" + "spec.runPolicy.ttlSecondAfterFinished" +
                unknown + "; did you mean \"ttlSecondsAfterFinished\"?\n" + "spec.runPolicy.xyz" +
                unknown + "\n" + "spec.tfReplicaSpec" + unknown +
                "; did you mean \"tfReplicaSpecs\"?\n" + "spec.tfReplicaSpecs.PS.tempalte" +
                unknown + "; did you mean \"template\"?\n");
  EXPECT_EQ(ErrorsOf(json), "");
}

TEST(ParseTFJob, AnyStoredStatusReads) {
  for (const char* status :
       {"7", "[]", "\"x\"", R"({"conditions":7,"replicaStatuses":[],"startTime":"soon"})",
        R"({"conditions":[7,null,{"type":"Strange","status":"True"},{"type":1}],"attempt":"x",
               "replicaStatuses":{"Launcher":{"active":1},"Worker":7,"PS":{"active":"x",
               "completedIndexes":"oops"}}})"}) {
    Json json = WithSpec("{}");
    json["status"] = Parse(status);
    StatusOr<api::TFJob> job = ParseTFJob(json);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_TRUE(job->status.conditions.empty());
    EXPECT_EQ(job->status.attempt, 0);
    EXPECT_EQ(job->status.replica_statuses[api::ReplicaType::kPS], api::ReplicaStatus());
  }
}

TEST(StatusToJson, OmitsZeros) {
  api::TFJobStatus status;
  EXPECT_EQ(PrintJson(StatusToJson(status)), "{}");
  status.replica_statuses[api::ReplicaType::kWorker];
  status.replica_statuses[api::ReplicaType::kPS].active = 1;
  EXPECT_EQ(PrintJson(StatusToJson(status)),
            R"({"replicaStatuses":{"PS":{"active":1},"Worker":{}}})");
}

}  // namespace
}  // namespace tfjob::manifest
