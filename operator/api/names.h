// The names, labels and owner references of a job's pods and services. All of it is API: the Python
// SDK, Katib and Kueue find pods by these labels.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/api/tfjob.h"

namespace tfjob::api {

inline constexpr char kControllerName[] = "tfjob-controller";  // label value; source of events
inline constexpr char kOperatorNameLabel[] = "training.kubeflow.org/operator-name";
inline constexpr char kJobNameLabel[] = "training.kubeflow.org/job-name";
// The queue of Kueue that suspends and resumes the job.
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";
inline constexpr char kReplicaTypeLabel[] = "training.kubeflow.org/replica-type";
inline constexpr char kReplicaIndexLabel[] = "training.kubeflow.org/replica-index";
inline constexpr char kJobRoleLabel[] = "training.kubeflow.org/job-role";
inline constexpr char kMasterRole[] = "master";               // value of kJobRoleLabel
inline constexpr char kAttemptLabel[] = "tfjob.dev/attempt";  // pods: status.attempt in decimal
// "true" asks for the deletion of pods that hang on a lost node.
inline constexpr char kForceDeleteAnnotation[] = "tfjob.dev/force-delete-lost-pods";

// "volcano", "scheduler-plugins", "native" or "none" over the operator's own choice.
inline constexpr char kGangSchedulerAnnotation[] = "tfjob.dev/gang-scheduler";
// How a pod says which pod group it belongs to: a label for the scheduler-plugins, annotations for Volcano.
inline constexpr char kPodGroupLabel[] = "scheduling.x-k8s.io/pod-group";
inline constexpr char kVolcanoGroupAnnotation[] = "scheduling.k8s.io/group-name";
inline constexpr char kVolcanoTaskAnnotation[] = "volcano.sh/task-spec";

using Labels = std::map<std::string, std::string>;

// "mnist-worker-0": of the pod and of its service.
std::string ReplicaName(const std::string& job_name, ReplicaType type, int32_t index);

// Selects the pods and services of a job (operator name, job name), and of one of its types.
Labels JobSelector(const std::string& job_name);
Labels TypeSelector(const std::string& job_name, ReplicaType type);
// The four labels of one replica: a service's labels and selector, a pod's labels with role and
// attempt added.
Labels ReplicaLabels(const std::string& job_name, ReplicaType type, int32_t index);
// The text of TypeSelector, "k=v,k=v": status.replicaStatuses[T].selector.
std::string SelectorText(const std::string& job_name, ReplicaType type);

// Which replica an object is of, from its type and index labels; nothing when either is missing or
// no such text.
struct ReplicaId {
  ReplicaType type = ReplicaType::kWorker;
  int32_t index = 0;

  auto operator<=>(const ReplicaId&) const = default;
};
std::optional<ReplicaId> ReplicaIdOf(const objects::LabelMap& labels);

// Whether the replica carries job-role=master: every Chief and Master, or else Worker 0.
bool IsMasterRole(const TFJob& job, ReplicaType type, int32_t index);

// The controller reference of everything the job owns.
objects::OwnerReference OwnerReferenceOf(const TFJob& job);

}  // namespace tfjob::api
