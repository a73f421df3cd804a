#include "operator/api/schema.h"

#include "runtime/base/check.h"
#include "runtime/base/status.h"

namespace tfjob::api {
namespace {

constexpr int64_t kMaxReplicas = 100'000;  // validate.h also limits the sum over all types

std::vector<Field> SchedulingPolicyFields() {
  return {
      {.name = "minAvailable",
       .type = FieldType::kInt32,
       .description = "The number of pods that must be schedulable before any of them starts.",
       .when_absent = "all replicas of all types"},
      {.name = "queue",
       .description =
           "The queue of the pod group, read only by Volcano. The field cannot be changed.",
       .when_absent = "\"default\""},
      {.name = "minResources",
       .type = FieldType::kQuantities,
       .description = "The minimum resources of the gang, by name (cpu, memory, nvidia.com/gpu).",
       .when_absent = "computed from the requests of the first minAvailable pods"},
      {.name = "priorityClass",
       .description = "The PriorityClass of the pod group, read by Volcano and Kueue. The pods' "
                      "own class is template.spec.priorityClassName."},
      {.name = "scheduleTimeoutSeconds",
       .type = FieldType::kInt32,
       .description = "How long the scheduler waits for the whole gang. Only scheduler-plugins "
                      "reads it."},
  };
}

std::vector<Field> EndFields() {
  return {
      {.name = "cleanPodPolicy",
       .description = "Which pods are deleted when the job ends: None, Running (those that are "
                      "still running or waiting, such as parameter servers) or All. Services are "
                      "always deleted. \"\" means All.",
       .words = {"", "All", "Running", "None"},
       .when_absent = "None, or the operator's --default-clean-pod-policy"},
      {.name = "ttlSecondsAfterFinished",
       .type = FieldType::kInt32,
       .description = "The job and its pods are deleted this many seconds after the job ends.",
       .minimum = 0,
       .when_absent = "never"},
      {.name = "activeDeadlineSeconds",
       .type = FieldType::kInt64,
       .description = "The job fails if it is active for longer, counted from status.startTime. If "
                      "the job is resumed, the time is counted from then.",
       .minimum = 0,
       .when_absent = "no deadline"},
      {.name = "backoffLimit",
       .type = FieldType::kInt32,
       .description = "The number of replica restarts, over all types, that the job survives. "
                      "Evictions and other disruptions do not count, nor do types with "
                      "restartPolicy Never.",
       .minimum = 0,
       .when_absent = "no limit"},
  };
}

std::vector<Field> RunPolicyFields() {
  std::vector<Field> fields = EndFields();
  fields.insert(
      fields.end(),
      {{.name = "schedulingPolicy",
        .type = FieldType::kObject,
        .description = "Gang scheduling: either all pods start or none. It takes effect if the "
                       "operator's --gang-scheduler-name or the job's annotation "
                       "tfjob.dev/gang-scheduler names a scheduler.",
        .fields = SchedulingPolicyFields()},
       {.name = "suspend",
        .type = FieldType::kBool,
        .description = "If true, the operator deletes the job's pods, and the job waits until the "
                       "field is false again. Queues such as Kueue set it.",
        .stored_default = "false"},
       {.name = "managedBy",
        .description = "The controller that runs this job. A job with kueue.x-k8s.io/multikueue is "
                       "left to that controller. The field cannot be changed.",
        .words = {"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"},
        .when_absent = "\"kubeflow.org/training-operator\": this operator"},
       {.name = "restartScope",
        .description = "What a retryable failure restarts: the Replica that failed, or the whole "
                       "Job. Job is for synchronous training, where the other replicas would wait "
                       "for the missing one. The pods of the new attempt carry the label "
                       "tfjob.dev/attempt.",
        .words = {"Replica", "Job"},
        .when_absent = "Replica"}});
  return fields;
}

std::vector<Field> ReplicaSpecFields() {
  return {
      {.name = "replicas",
       .type = FieldType::kInt32,
       .description = "The number of pods of this type. It may be changed while the job runs. If "
                      "it is reduced, the highest indexes are removed first.",
       .minimum = 0,
       .maximum = kMaxReplicas,
       .when_absent = "1"},
      {.name = "restartPolicy",
       .description = "What happens when a replica fails. Never: the job fails. OnFailure: the "
                      "replica is restarted. Always: the replica is restarted, even after success. "
                      "ExitCode: exit codes of 128 and above (signals) restart the replica; 1 to "
                      "127 fail the job. This policy overrides the template's own restartPolicy.",
       .words = {"", "Always", "OnFailure", "Never", "ExitCode"},
       .when_absent = "Never"},
      {.name = "template",
       .type = FieldType::kPodTemplate,
       .description = "The pod to create, a v1 PodTemplateSpec (kubectl explain pod.spec describes "
                      "its fields; every field is passed on). One container must be named "
                      "\"tensorflow\": it gets TF_CONFIG, and its exit code decides whether the "
                      "replica has succeeded. Its port named \"tfjob-port\" is the port of the "
                      "TensorFlow cluster; without such a port, it is 2222."},
  };
}

std::vector<Field> SpecFields() {
  return {
      {.name = "tfReplicaSpecs",
       .type = FieldType::kObjectMap,
       .description =
           "The replicas by type: Chief or Master (coordinates and decides when the job ends), "
           "Worker (trains), PS (parameter server), Evaluator. Keys may be in any letter case. "
           "Without a Chief or Master, worker 0 decides when the job ends.",
       .required = true,
       .fields = ReplicaSpecFields()},
      {.name = "runPolicy",
       .type = FieldType::kObject,
       .description = "How the job as a whole runs and ends.",
       .fields = RunPolicyFields()},
      {.name = "successPolicy",
       .description = "When a job without a Chief or Master succeeds: \"\" once worker 0 has "
                      "succeeded, AllWorkers once all workers have.",
       .words = {"", "AllWorkers"},
       .when_absent = "\"\""},
      {.name = "enableDynamicWorker",
       .type = FieldType::kBool,
       .description = "Lets workers join and leave: each task's TF_CONFIG names only itself and "
                      "the parameter servers, and a failed worker does not fail the job.",
       .when_absent = "false"},
  };
}

std::vector<Field> ConditionFields() {
  return {
      {.name = "type",
       .description = "Created, Running, Restarting, Succeeded, Failed or Suspended.",
       .required = true},
      {.name = "status",
       .description = "The status of the condition.",
       .required = true,
       .words = {"True", "False", "Unknown"}},
      {.name = "reason", .description = "A machine-readable reason, such as TFJobRestarting."},
      {.name = "message", .description = "A human-readable message."},
      {.name = "lastUpdateTime",
       .type = FieldType::kTime,
       .description = "When this condition was written."},
      {.name = "lastTransitionTime",
       .type = FieldType::kTime,
       .description = "When the condition's status last changed."},
  };
}

std::vector<Field> ReplicaStatusFields() {
  return {
      {.name = "active",
       .type = FieldType::kInt32,
       .description = "Replicas whose pod runs and is not being deleted."},
      {.name = "succeeded",
       .type = FieldType::kInt32,
       .description = "Replicas that have completed, with or without a pod."},
      {.name = "failed",
       .type = FieldType::kInt32,
       .description = "Replicas that failed and are not restarted."},
      {.name = "selector",
       .description = "Selects the pods of this type. The scale subresource and autoscalers read "
                      "it."},
      {.name = "restarts",
       .type = FieldType::kInt32,
       .description = "The number of pods recreated and containers restarted after failures. It "
                      "never decreases. backoffLimit limits the sum over all types."},
      {.name = "completedIndexes",
       .description = "The indexes that have completed, such as \"0-3,7\". They are not run again, "
                      "even if their pods are gone."},
      {.name = "replacing",
       .type = FieldType::kStrings,
       .description = "UIDs of pods that are already counted in restarts, or need not be counted. "
                      "They remain in this list for some minutes after the pods are gone."},
  };
}

std::vector<Field> StatusFields() {
  return {
      {.name = "conditions",
       .type = FieldType::kObjects,
       .description =
           "The job's conditions. The one that changed last is at the end of the list, and its "
           "type is the job's state. Succeeded and Failed exclude each other and are final.",
       .fields = ConditionFields()},
      {.name = "replicaStatuses",
       .type = FieldType::kObjectMap,
       .description = "The numbers of replicas in each state, by replica type.",
       .fields = ReplicaStatusFields()},
      {.name = "ready",
       .description = "The numbers of active and of all replicas, over all types: \"4/6\"."},
      {.name = "restarts",
       .type = FieldType::kInt32,
       .description = "The number of restarts, over all types.",
       .stored_default = "0"},
      {.name = "startTime",
       .type = FieldType::kTime,
       .description = "When the job started, or was resumed."},
      {.name = "completionTime", .type = FieldType::kTime, .description = "When the job ended."},
      {.name = "lastReconcileTime",
       .type = FieldType::kTime,
       .description = "Exists for programs that read the Training Operator's status."},
      {.name = "attempt",
       .type = FieldType::kInt32,
       .description = "The number of times that restartScope Job has restarted all replicas "
                      "together."},
  };
}

Field Schema() {
  return {.name = "TFJob",
          .type = FieldType::kObject,
          .description =
              "A distributed training job: replicas of pods that find each other through "
              "TF_CONFIG.",
          .fields = {
              {.name = "apiVersion", .description = "kubeflow.org/v1"},
              {.name = "kind", .description = "TFJob"},
              {.name = "metadata",
               .type = FieldType::kMetadata,
               .description = "The name is the prefix of the names of pods and services "
                              "(NAME-worker-0). It must therefore be a DNS-1035 label that is "
                              "short enough for all of them to have at most 63 characters."},
              {.name = "spec",
               .type = FieldType::kObject,
               .description = "The job to run.",
               .required = true,
               .fields = SpecFields()},
              {.name = "status",
               .type = FieldType::kObject,
               .description = "The state that the operator has observed. Only the operator writes "
                              "it.",
               .fields = StatusFields()},
          }};
}

const Field* Member(const Field& field, std::string_view name) {
  for (const Field& member : field.fields) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

}  // namespace

const Field& TFJobSchema() {
  static const Field schema = Schema();
  return schema;
}

const Field& SchemaField(std::string_view path) {
  const Field* field = &TFJobSchema();
  while (!path.empty()) {
    const size_t dot = path.find('.');
    field = Member(*field, path.substr(0, dot));
    ENFORCE(field != nullptr, StrCat("no field ", path, " in the TFJob's schema"));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return *field;
}

std::vector<std::string> SchemaMembers(std::string_view path) {
  std::vector<std::string> names;
  for (const Field& member : SchemaField(path).fields) names.push_back(member.name);
  return names;
}

}  // namespace tfjob::api
