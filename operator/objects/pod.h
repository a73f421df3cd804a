// Contains the part of a pod that the operator observes: the few fields that decisions need, about
// 1 KB per pod, rather than the pod's JSON tree.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
#pragma once

#include <memory>

#include "operator/objects/metadata.h"
#include "runtime/base/json_view.h"

namespace tfjob::objects {

enum class PodPhase { kUnknown, kPending, kRunning, kSucceeded, kFailed };
std::string_view Name(PodPhase phase);  // "Pending"
// Returns the phase with this name; kUnknown if there is no such phase.
PodPhase ParsePhase(std::string_view text);

// Represents one entry of status.containerStatuses or status.initContainerStatuses.
struct ContainerStatus {
  enum class State { kWaiting, kRunning, kTerminated };

  std::string name;
  bool init = false;
  State state = State::kWaiting;
  bool ready = false;
  int32_t restart_count = 0;
  int32_t exit_code = 0;  // from the terminated state
  int32_t signal = 0;
  // The reason for the waiting or terminated state, such as "ImagePullBackOff", "OOMKilled" or
  // "Completed".
  std::string reason;
  std::string message;
  Time started_at;   // from the running or terminated state
  Time finished_at;  // from the terminated state
  // How the previous run ended, from lastState.terminated; 0 and "" if there was no previous run.
  int32_t last_exit_code = 0;
  std::string last_message;

  bool operator==(const ContainerStatus&) const = default;
};

struct PodCondition {
  std::string type;    // "PodScheduled", "Ready", "DisruptionTarget", …
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
  Time last_transition_time;

  bool operator==(const PodCondition&) const = default;
};

// The pod annotation that contains the id of the operator's key from which the pod's job key was
// derived.
inline constexpr char kKeyIdAnnotation[] = "tfjob.dev/key-id";

struct Pod {
  ObjectMeta metadata;
  PodPhase phase = PodPhase::kUnknown;
  bool in_scheduling_group = false;  // spec.schedulingGroup names a PodGroup of Kubernetes itself
  std::string key_id;                // KeyIdOf
  std::string reason;                // status.reason: "Evicted", "NodeLost", …
  std::string message;
  std::string node_name;
  std::string pod_ip;
  std::string host_ip;
  Time start_time;
  std::vector<PodCondition> conditions;
  // The containers. Init containers come first; within each group, the order is the API server's.
  std::vector<ContainerStatus> containers;
  // True if an earlier version of the pod was in phase Succeeded or Failed and was not being
  // deleted. Not part of the JSON: the code that watches the pod sets it (RememberEnd).
  bool ended_before_deletion = false;

  // Returns the init or regular container with the given name; nullptr if there is none.
  const ContainerStatus* container(std::string_view name) const;
  const PodCondition* condition(std::string_view type) const;
  // Returns the sum of the restart counts of init and regular containers.
  int32_t restart_count() const;

  bool operator==(const Pod&) const = default;
};

// Returns the value of kKeyIdAnnotation; "" if there is none. Returns "invalid" if the value cannot
// be an id: anyone who may change pods can set the annotation, and its value appears in messages.
std::string KeyIdOf(const ObjectMeta& pod);

// If the pod has container statuses, removes the conditions that no longer matter: those that are
// True, except DisruptionTarget. This saves memory if the cache contains thousands of running pods.
void DropSettledConditions(Pod& pod);

// Returns a copy of `pod` with ended_before_deletion set if `earlier`, the previously seen version
// of the same pod, shows that the pod had ended. Otherwise, returns `pod` itself.
std::shared_ptr<const Pod> RememberEnd(const Pod& earlier, std::shared_ptr<const Pod> pod);

// Parses a v1 Pod. Unknown members are ignored, and an unknown phase becomes kUnknown. Drops all
// annotations except kKeyIdAnnotation, because they may be large and no decision uses them.
StatusOr<Pod> ParsePod(const Json& object);
StatusOr<Pod> ParsePod(const JsonView& object);
// Returns the status subresource of the pod, as a kubelet writes it (`{"status": …}` without
// metadata).
Json StatusToJson(const Pod& pod);

}  // namespace tfjob::objects
