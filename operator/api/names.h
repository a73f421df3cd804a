// Defines the names, labels and owner references of a job's pods and services. All of them are part
// of the API: the Python SDK, Katib and Kueue find pods by these labels.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/api/tfjob.h"

namespace tfjob::api {

// kControllerName is the value of kOperatorNameLabel, and the source of events.
inline constexpr char kControllerName[] = "tfjob-controller";
inline constexpr char kOperatorNameLabel[] = "training.kubeflow.org/operator-name";
inline constexpr char kJobNameLabel[] = "training.kubeflow.org/job-name";
// kQueueLabel names the job's queue in Kueue, which suspends and resumes the job.
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";
inline constexpr char kReplicaTypeLabel[] = "training.kubeflow.org/replica-type";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";
inline constexpr char kJobRoleLabel[] = "training.kubeflow.org/job-role";
inline constexpr char kMasterRole[] = "master";               // the value of kJobRoleLabel
inline constexpr char kAttemptLabel[] = "tfjob.dev/attempt";  // on pods: status.attempt in decimal
// If "true", requests the deletion of pods that are stuck on a lost node.
inline constexpr char kForceDeleteAnnotation[] = "tfjob.dev/force-delete-lost-pods";

// On a PersistentVolumeClaim: the folder on this machine that `tfjob run` uses for the claim. Has
// no meaning in a cluster.
inline constexpr char kLocalPathAnnotation[] = "tfjob.dev/local-path";

// Overrides the operator's flag --job-network-policies: "true" requests a NetworkPolicy that opens
// the job's ports to the job's own pods only; "false" requests none.
inline constexpr char kNetworkPolicyAnnotation[] = "tfjob.dev/network-policy";

// Overrides the operator's gang scheduler: "volcano", "scheduler-plugins", "native" or "none".
inline constexpr char kGangSchedulerAnnotation[] = "tfjob.dev/gang-scheduler";
// The label (for scheduler-plugins) and the annotations (for Volcano) that assign a pod to its
// pod group.
inline constexpr char kPodGroupLabel[] = "scheduling.x-k8s.io/pod-group";
inline constexpr char kVolcanoGroupAnnotation[] = "scheduling.k8s.io/group-name";
inline constexpr char kVolcanoTaskAnnotation[] = "volcano.sh/task-spec";

using Labels = std::map<std::string, std::string>;

// Returns the name that a replica's pod and service share: "mnist-worker-0".
std::string ReplicaName(const std::string& job_name, ReplicaType type, int32_t index);
// Returns the part of this name before the index: "mnist-worker-".
std::string ReplicaNamePrefix(const std::string& job_name, ReplicaType type);

// Returns the name of the job's NetworkPolicy: "mnist-tasks". The job's own name is not used,
// because the user may already have a policy with that name.
std::string NetworkPolicyName(const std::string& job_name);

// Return the labels that select the pods and services of a job (operator name and job name), or of
// one of its replica types.
Labels JobSelector(const std::string& job_name);
Labels TypeSelector(const std::string& job_name, ReplicaType type);
// Returns the four labels that identify a replica. The replica's service has these labels and uses
// them as its selector. The replica's pod also has labels with its attempt and, if it is the
// master, its role.
Labels ReplicaLabels(const std::string& job_name, ReplicaType type, int32_t index);
// Returns TypeSelector as text, "k=v,k=v", for status.replicaStatuses[T].selector.
std::string SelectorText(const std::string& job_name, ReplicaType type);

// Identifies a replica of a job.
struct ReplicaId {
  ReplicaType type = ReplicaType::kWorker;
  int32_t index = 0;

  auto operator<=>(const ReplicaId&) const = default;
};
// Returns the replica that an object's type and index labels identify; nullopt if either label is
// missing or malformed.
std::optional<ReplicaId> ReplicaIdOf(const objects::LabelMap& labels);

// Returns whether the replica has the label job-role=master. Every Chief and Master has it; if the
// job has neither, Worker 0 has it.
bool IsMasterRole(const TFJob& job, ReplicaType type, int32_t index);

// Returns the controller reference that every object owned by the job has.
objects::OwnerReference OwnerReferenceOf(const TFJob& job);

}  // namespace tfjob::api
