// A pod as the operator observes it: the few fields that decisions need, never a DOM (about 1 KB a
// pod). https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
#pragma once

#include "operator/objects/metadata.h"

namespace tfjob::objects {

enum class PodPhase { kUnknown, kPending, kRunning, kSucceeded, kFailed };
std::string_view Name(PodPhase phase);  // "Pending"

// One entry of status.containerStatuses or status.initContainerStatuses.
struct ContainerStatus {
  enum class State { kWaiting, kRunning, kTerminated };

  std::string name;
  bool init = false;
  State state = State::kWaiting;
  bool ready = false;
  int32_t restart_count = 0;
  int32_t exit_code = 0;  // of the terminated state
  int32_t signal = 0;
  std::string
      reason;  // of the waiting or terminated state: "ImagePullBackOff", "OOMKilled", "Completed"
  std::string message;
  Time started_at;   // of the running or terminated state
  Time finished_at;  // of the terminated state

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

struct Pod {
  ObjectMeta metadata;
  PodPhase phase = PodPhase::kUnknown;
  bool in_scheduling_group = false;  // spec.schedulingGroup names a PodGroup of Kubernetes itself
  std::string reason;                // status.reason: "Evicted", "NodeLost", …
  std::string message;
  std::string node_name;
  std::string pod_ip;
  std::string host_ip;
  Time start_time;
  std::vector<PodCondition> conditions;
  std::vector<ContainerStatus>
      containers;  // init containers first, each in the order of the API server

  // The (init or regular) container of that name, or nullptr.
  const ContainerStatus* container(std::string_view name) const;
  const PodCondition* condition(std::string_view type) const;
  // The sum of restart counts of init and regular containers.
  int32_t restart_count() const;

  bool operator==(const Pod&) const = default;
};

// Leaves out the conditions of a pod with containers that say nothing to anyone: those that are True, but
// for a DisruptionTarget. A cache holds thousands of pods that run.
void DropSettledConditions(Pod& pod);

// Reads a v1 Pod. Unknown members are ignored, an unknown phase is kUnknown. Annotations are left
// out: nothing decides by them, and they may be large.
StatusOr<Pod> ParsePod(const Json& object);
StatusOr<Pod> ParsePod(const JsonView& object);
// The status subresource of the pod, as a kubelet writes it (`{"status": …}` without metadata).
Json StatusToJson(const Pod& pod);

}  // namespace tfjob::objects
