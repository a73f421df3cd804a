#include "operator/api/reasons.h"

#include "operator/api/names.h"

namespace tfjob::api {
namespace {

// The longest message, in bytes, before " and 7 more" is appended. Kubernetes accepts messages of
// up to 1,024 bytes.
constexpr size_t kMaxNames = 960;

// Returns a message that lists the names of the objects, such as "Created pods: a, b and 7 more".
std::string Listed(std::string_view what, const Names& objects) {
  std::string text = StrCat(what, objects.size() == 1 ? ": " : "s: ");
  for (size_t i = 0; i < objects.size(); ++i) {
    if (i > 0 && text.size() + objects[i].size() > kMaxNames) {
      return StrCat(text, " and ", objects.size() - i, " more");
    }
    text += StrCat(i == 0 ? "" : ", ", objects[i]);
  }
  return text;
}

}  // namespace

std::string CreatedMessage(const TFJob& job) {
  return StrCat("TFJob ", job.metadata.name, " is created.");
}

std::string RefusedMessage(const TFJob& job, std::string_view refusal) {
  return StrCat("TFJob ", job.metadata.name,
                " is created, but the server refuses its objects: ", refusal);
}

std::string RunningMessage(const TFJob& job) {
  return StrCat("TFJob ", job.key(), " is running.");
}

std::string RestartingMessage(const TFJob& job, ReplicaType type) {
  return StrCat("job ", job.metadata.name, " is restarting because ", Name(type),
                " replica(s) failed.");
}

std::string SucceededMessage(const TFJob& job) {
  return StrCat("TFJob ", job.key(), " successfully completed.");
}

std::string FailedReplicasMessage(const TFJob& job, ReplicaType type, int32_t failed) {
  return StrCat("TFJob ", job.key(), " has failed because ", failed, " ", Name(type),
                " replica(s) failed.");
}

std::string PermanentFailureMessage(const TFJob& job, ReplicaType type) {
  return StrCat("job \"", job.metadata.name, "\" is failing because \"", Name(type),
                "\" replica(s) failed.");
}

std::string BackoffLimitMessage(const TFJob& job) {
  return StrCat("Job ", job.metadata.name,
                " has failed because it has reached the specified backoff limit");
}

std::string DeadlineMessage(const TFJob& job) {
  return StrCat("Job ", job.metadata.name,
                " has failed because it was active longer than specified deadline");
}

std::string SuspendedMessage(const TFJob& job) {
  return StrCat("TFJob ", job.metadata.name, " is suspended.");
}

std::string ResumedMessage(const TFJob& job) {
  return StrCat("TFJob ", job.metadata.name, " is resumed.");
}

std::string InvalidSpecMessage(const TFJob& job, std::string_view problems) {
  return StrCat("TFJob ", job.key(), " has failed because the spec is invalid: ", problems);
}

std::string PodGroupKeptMessage(std::string_view group, int64_t kept, int64_t wanted) {
  return StrCat("Pod group ", group, " starts ", kept, " pods together, but the job now wants ",
                wanted, ". ",
                "scheduling.k8s.io/v1alpha2 cannot change this: the group stays as it is until "
                "none of the job's pods is left. Suspend and resume the job to have it created "
                "again");
}

std::string NoNetworkPoliciesMessage() {
  return StrCat("the annotation ", kNetworkPolicyAnnotation,
                " asks for a NetworkPolicy, but this operator creates none (its flag "
                "--job-network-policies is none): remove the annotation, or set the flag to "
                "annotated or all");
}

std::string NetworkPolicyKeepsChangingMessage(std::string_view policy,
                                              std::string_view difference) {
  return StrCat("Something keeps changing ", difference, " of NetworkPolicy ", policy,
                ", such as an admission webhook, so the operator restores it less and less often: "
                "exclude the policies with the label training.kubeflow.org/operator-name from it");
}

std::string SchedulingGroupDroppedMessage(std::string_view pod) {
  return StrCat("The API server dropped spec.schedulingGroup of pod ", pod,
                ": its feature gate GenericWorkload is off. The job's pods are placed one by one");
}

std::string NoNativeGangsMessage(std::string_view served) {
  constexpr char kNeeded[] = "v1beta1 (Kubernetes 1.37) or v1alpha2 (1.36)";
  if (!served.empty()) {
    return StrCat("the API server has Workloads as ", served,
                  ", which this operator does not know: it needs scheduling.k8s.io/", kNeeded);
  }
  return StrCat("the API server has no Workloads: native gang scheduling needs scheduling.k8s.io/",
                kNeeded, ", enabled by --runtime-config and the feature gates GenericWorkload ",
                "and GangScheduling");
}

std::string CreatedObjectsMessage(std::string_view what, const Names& objects) {
  return Listed(StrCat("Created ", what), objects);
}

std::string DeletedObjectsMessage(std::string_view what, const Names& objects) {
  return Listed(StrCat("Deleted ", what), objects);
}

std::string FailedCreateMessage(std::string_view error) {
  return StrCat("Error creating: ", error);
}
std::string FailedDeleteMessage(std::string_view error) {
  return StrCat("Error deleting: ", error);
}
std::string FailedChangeMessage(std::string_view error) {
  return StrCat("Error changing: ", error);
}

std::string ExitedWithCodeMessage(std::string_view name_space, std::string_view pod, int32_t code,
                                  std::string_view last_words) {
  return StrCat("Pod: ", name_space, ".", pod, " exited with code ", code,
                last_words.empty() ? "" : ": ", last_words);
}

std::string WorkerLostMessage(std::string_view name_space, std::string_view pod,
                              std::string_view losses) {
  return StrCat("Pod: ", name_space, ".", pod, " reports: ", losses);
}

std::string ContainerTerminatedMessage(std::string_view pod, std::string_view container,
                                       int32_t code, std::string_view message) {
  return StrCat("Error pod ", pod, " container ", container, " exitCode: ", code,
                " terminated message: ", message);
}

std::string ContainerWaitingMessage(std::string_view pod, std::string_view container,
                                    std::string_view message) {
  return StrCat("Error pod ", pod, " container ", container, " waiting message: ", message);
}

std::string PodConditionMessage(std::string_view pod, std::string_view message) {
  return StrCat("Error pod ", pod, " condition message: ", message);
}

std::string PodTemplateRestartPolicyMessage(ReplicaType type) {
  return StrCat("spec.tfReplicaSpecs.", Name(type),
                ".template.spec.restartPolicy has no effect: spec.tfReplicaSpecs.", Name(type),
                ".restartPolicy applies instead");
}

std::string PodTemplateSchedulerNameMessage(ReplicaType type, std::string_view scheduler,
                                            bool enforced) {
  return StrCat("spec.tfReplicaSpecs.", Name(type),
                ".template.spec.schedulerName is not the gang's scheduler, ", scheduler,
                enforced ? ", which the operator enforces: the pods get the gang's scheduler"
                         : ": these pods are not placed together with the others");
}

std::string PodNameTakenMessage(std::string_view pod, std::string_view owner) {
  return StrCat("Pod ", pod, " belongs to ", owner,
                ", not to this job: its replica waits until that pod is deleted");
}

std::string ServiceNameTakenMessage(std::string_view service, std::string_view owner) {
  return StrCat("Service ", service, " belongs to ", owner,
                ", not to this job: its replica waits until that service is deleted");
}

std::string PodOnLostNodeMessage(std::string_view pod, std::string_view node) {
  return StrCat(
      "Pod ", pod, " cannot terminate because node ", node,
      " is not ready. If the node is certainly gone, delete the pod with --force, or set the job's "
      "annotation ",
      kForceDeleteAnnotation, ": \"true\"");
}

std::string JobKeyMissingMessage(const TFJob& job, std::string_view missing,
                                 std::string_view used) {
  const std::string got = used.empty() ? "no key" : StrCat("one under ", used);
  return StrCat("The running pods have a job key under the operator's key ", missing,
                ", which the operator does not have any more. New pods get ", got,
                ", so tasks of tfjob-trainer refuse each other. Put the key back, or restart all "
                "pods together: tfjob restart ",
                job.metadata.name, " -n ", job.metadata.name_space);
}

}  // namespace tfjob::api
