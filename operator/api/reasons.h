// Defines every reason that a condition or an event of this operator can have, and the exact
// messages that clients rely on. docs/errors.md explains each reason; a test checks that it agrees
// with this file.
//
// Two kinds of event have a reason that is not defined here: an event about a container has the
// container's reason (ImagePullBackOff, OOMKilled, …), and an event about a pod condition has that
// condition's reason (Unschedulable, …).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/tfjob.h"

namespace tfjob::api {

// The reasons for conditions. All of them except those for Created and Running are also event
// reasons.
inline constexpr char kReasonCreated[] = "TFJobCreated";
inline constexpr char kReasonRunning[] = "TFJobRunning";
inline constexpr char kReasonRestarting[] = "TFJobRestarting";
inline constexpr char kReasonSucceeded[] = "TFJobSucceeded";
inline constexpr char kReasonFailed[] = "TFJobFailed";
inline constexpr char kReasonSuspended[] = "TFJobSuspended";
inline constexpr char kReasonResumed[] = "TFJobResumed";
inline constexpr char kReasonFailedValidation[] = "TFJobFailedValidation";

// The event reasons. FailedCreatePod is also a reason for the Created condition.
inline constexpr char kReasonCreatedPod[] = "SuccessfulCreatePod";
inline constexpr char kReasonFailedCreatePod[] = "FailedCreatePod";
inline constexpr char kReasonDeletedPod[] = "SuccessfulDeletePod";
inline constexpr char kReasonFailedDeletePod[] = "FailedDeletePod";
inline constexpr char kReasonCreatedService[] = "SuccessfulCreateService";
inline constexpr char kReasonFailedCreateService[] = "FailedCreateService";
inline constexpr char kReasonDeletedService[] = "SuccessfulDeleteService";
inline constexpr char kReasonFailedDeleteService[] = "FailedDeleteService";
inline constexpr char kReasonCreatedPodGroup[] = "SuccessfulCreatePodGroup";
inline constexpr char kReasonFailedCreatePodGroup[] = "FailedCreatePodGroup";
inline constexpr char kReasonFailedChangePodGroup[] = "FailedChangePodGroup";
inline constexpr char kReasonDeletedPodGroup[] = "SuccessfulDeletePodGroup";
inline constexpr char kReasonFailedDeletePodGroup[] = "FailedDeletePodGroup";
inline constexpr char kReasonPodGroupKept[] = "PodGroupKept";
inline constexpr char kReasonSchedulingGroupDropped[] = "SchedulingGroupDropped";
inline constexpr char kReasonCreatedWorkload[] = "SuccessfulCreateWorkload";
inline constexpr char kReasonFailedCreateWorkload[] = "FailedCreateWorkload";
inline constexpr char kReasonDeletedWorkload[] = "SuccessfulDeleteWorkload";
inline constexpr char kReasonFailedDeleteWorkload[] = "FailedDeleteWorkload";
inline constexpr char kReasonCreatedNetworkPolicy[] = "SuccessfulCreateNetworkPolicy";
inline constexpr char kReasonFailedCreateNetworkPolicy[] = "FailedCreateNetworkPolicy";
inline constexpr char kReasonFailedChangeNetworkPolicy[] = "FailedChangeNetworkPolicy";
inline constexpr char kReasonDeletedNetworkPolicy[] = "SuccessfulDeleteNetworkPolicy";
inline constexpr char kReasonFailedDeleteNetworkPolicy[] = "FailedDeleteNetworkPolicy";
inline constexpr char kReasonDeletedJob[] = "SuccessfulDeleteJob";
inline constexpr char kReasonFailedDeleteJob[] = "FailedDeleteJob";
inline constexpr char kReasonExitedWithCode[] = "ExitedWithCode";
inline constexpr char kReasonWorkerLost[] = "WorkerLost";
inline constexpr char kReasonPodTemplateRestartPolicy[] = "SetPodTemplateRestartPolicy";
inline constexpr char kReasonPodTemplateSchedulerName[] = "SetPodTemplateSchedulerName";
inline constexpr char kReasonPodNameTaken[] = "PodNameTaken";
inline constexpr char kReasonServiceNameTaken[] = "ServiceNameTaken";
inline constexpr char kReasonPodOnLostNode[] = "PodOnLostNode";
inline constexpr char kReasonJobKeyMissing[] = "JobKeyMissing";
inline constexpr char kReasonSpecWarning[] = "TFJobSpecWarning";

// Messages for conditions, and for the events that accompany them.
std::string CreatedMessage(const TFJob& job);
// `refusal` is the API server's error message.
std::string RefusedMessage(const TFJob& job, std::string_view refusal);
std::string RunningMessage(const TFJob& job);
std::string RestartingMessage(const TFJob& job, ReplicaType type);
std::string SucceededMessage(const TFJob& job);
// `failed` is the number of replicas of this type that have failed and are not restarted under the
// type's policy.
std::string FailedReplicasMessage(const TFJob& job, ReplicaType type, int32_t failed);
// Used if a replica exits with a code below 128 under the ExitCode policy.
std::string PermanentFailureMessage(const TFJob& job, ReplicaType type);
std::string BackoffLimitMessage(const TFJob& job);
std::string DeadlineMessage(const TFJob& job);
std::string SuspendedMessage(const TFJob& job);
std::string ResumedMessage(const TFJob& job);
// `problems` has one problem per line, each beginning with the path of its field.
std::string InvalidSpecMessage(const TFJob& job, std::string_view problems);

// Event messages. `what` is a kind of object, such as "pod", and `objects` are the names of such
// objects: "Created pod: a", "Created pods: a, b". If not all names fit into the event, the message
// ends with the number of the other objects: "and 7 more". `error` is the API server's message.
using Names = std::vector<std::string>;
std::string CreatedObjectsMessage(std::string_view what, const Names& objects);
std::string DeletedObjectsMessage(std::string_view what, const Names& objects);
// `kept` is the current number of pods of the pod group that start together; it cannot be changed.
// `wanted` is the number that the spec requests.
std::string PodGroupKeptMessage(std::string_view group, int64_t kept, int64_t wanted);
// Reports that `pod` was created without the requested group membership.
std::string SchedulingGroupDroppedMessage(std::string_view pod);
// `served` is the apiVersion in which the server offers Kubernetes' own Workloads; "" if it does
// not offer them.
std::string NoNativeGangsMessage(std::string_view served);
// Reports that the job requests a NetworkPolicy but the operator's flag --job-network-policies
// allows none.
std::string NoNetworkPoliciesMessage();
// Reports that the operator has restored the rules of a NetworkPolicy several times. `difference`
// is the path of the first field that is wrong again.
std::string NetworkPolicyKeepsChangingMessage(std::string_view policy, std::string_view difference);
std::string FailedCreateMessage(std::string_view error);
std::string FailedDeleteMessage(std::string_view error);
std::string FailedChangeMessage(std::string_view error);
// `last_words` is the explanation that the container left; "" if it left none.
std::string ExitedWithCodeMessage(std::string_view name_space, std::string_view pod, int32_t code,
                                  std::string_view last_words);
// `losses` is what the pod's container has written about tasks that its run has lost.
std::string WorkerLostMessage(std::string_view name_space, std::string_view pod,
                              std::string_view losses);
// Describe problems of an active pod: a container that has terminated or is waiting, and a
// condition that is not met.
std::string ContainerTerminatedMessage(std::string_view pod, std::string_view container,
                                       int32_t code, std::string_view message);
std::string ContainerWaitingMessage(std::string_view pod, std::string_view container,
                                    std::string_view message);
std::string PodConditionMessage(std::string_view pod, std::string_view message);
std::string PodTemplateRestartPolicyMessage(ReplicaType type);
// Reports that the type's pod template names a scheduler other than `scheduler`, the gang's
// scheduler. If `enforced` is true, the operator overrides the template; otherwise, the type's pods
// are not placed together with the gang.
std::string PodTemplateSchedulerNameMessage(ReplicaType type, std::string_view scheduler,
                                            bool enforced);
// `owner` is the controller of the existing object, or "nobody".
std::string PodNameTakenMessage(std::string_view pod, std::string_view owner);
std::string ServiceNameTakenMessage(std::string_view service, std::string_view owner);
std::string PodOnLostNodeMessage(std::string_view pod, std::string_view node);
// `missing` is the id of the operator's key from which the running pods' job key was derived.
// `used` is the id of the operator's key for new pods; "" if there is none.
std::string JobKeyMissingMessage(const TFJob& job, std::string_view missing, std::string_view used);

}  // namespace tfjob::api
