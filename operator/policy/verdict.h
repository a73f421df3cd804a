// Describes what to do about a job: its next status, and the objects to create, change, adopt and
// delete. A verdict is a printable value that does not refer to its inputs. Equal inputs lead to
// equal verdicts, with lists in a fixed order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/objects/event.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/network_policy.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob::policy {

// The stages of a job. The stage determines what a verdict contains.
enum class Stage {
  kIgnored,  // another controller's job (managedBy), or a job that is being deleted: nothing to do
  kSuspended,  // no object may exist; also while a resumed job waits for its old pods to go
  kRunning,    // replicas are wanted
  kEnded,      // the status is Succeeded or Failed: clean up, then TTL
};
std::string_view Name(Stage stage);  // "Ignored", …

struct PodToCreate {
  Slot slot;
  std::string name;
  int32_t attempt = 0;  // status.attempt; passed to the pod as tfjob.dev/attempt and TFJOB_ATTEMPT

  bool operator==(const PodToCreate&) const = default;
};

// Describes a slot whose pod must not be created yet.
struct PodThatWaits {
  Slot slot;
  std::string name;
  std::optional<Time> not_before;  // nullopt: it waits for an event, such as a pod's deletion
  std::string why;                 // "the previous pod still exists", …

  bool operator==(const PodThatWaits&) const = default;
};

enum class DeleteReason {
  kRestart,     // failed, and is being replaced
  kNewAttempt,  // belongs to an earlier attempt
  kScaleDown,   // index beyond the slots, type not in the spec, or not the name of a slot
  kSuspend,
  kCleanUp,   // the job ended
  kLostNode,  // terminating on a node that is gone: grace period 0
};
std::string_view Name(DeleteReason reason);  // "Restart", …

struct PodToDelete {
  std::string name;
  std::string uid;  // precondition of the delete
  std::optional<int64_t> grace_period_seconds;
  DeleteReason reason = DeleteReason::kRestart;

  bool operator==(const PodToDelete&) const = default;
};

struct ServiceToCreate {
  Slot slot;
  std::string name;

  bool operator==(const ServiceToCreate&) const = default;
};

// Identifies a service to delete, or to adopt by patching its owner references.
struct ServiceRef {
  std::string name;
  std::string uid;

  bool operator==(const ServiceRef&) const = default;
};

struct PodGroupRef {
  GangScheduler scheduler = GangScheduler::kNone;
  std::string name;
  std::string uid;

  bool operator==(const PodGroupRef&) const = default;
};

// Identifies a Workload of Kubernetes itself.
struct WorkloadRef {
  std::string name;
  std::string uid;

  bool operator==(const WorkloadRef&) const = default;
};

struct PodGroupChange {
  PodGroupRef group;
  PodGroupSpec spec;

  bool operator==(const PodGroupChange&) const = default;
};

struct NetworkPolicyRef {
  std::string name;
  std::string uid;

  bool operator==(const NetworkPolicyRef&) const = default;
};

struct NetworkPolicyChange {
  NetworkPolicyRef policy;
  NetworkPolicySpec spec;

  bool operator==(const NetworkPolicyChange&) const = default;
};

// An event on the job. `cause` identifies what happened ("exit/<pod uid>"). Events with equal
// causes have equal texts, in every reconcile and every process. The name of the event object is
// derived from the cause (EventName), so creating the object again fails with AlreadyExists, which
// callers ignore.
struct JobEvent {
  objects::EventType type = objects::EventType::kNormal;
  std::string reason;
  std::string message;
  std::string cause;
  // If false, the event accompanies a change of status, so no later reconcile emits it. If true (a
  // standing event), the cause may still exist at the next reconcile, so the caller must record the
  // cause in History::reported.
  bool standing = false;

  bool operator==(const JobEvent&) const = default;
};

struct Verdict {
  Stage stage = Stage::kIgnored;
  api::TFJobStatus status;                      // equal to the job's if nothing changed
  Gang gang;                                    // the gang that new pods join
  std::optional<PodGroupSpec> create_workload;  // created before the pod group
  std::optional<PodGroupSpec> create_pod_group;
  std::optional<PodGroupChange> change_pod_group;
  std::vector<PodGroupRef> delete_pod_groups;
  std::vector<WorkloadRef> delete_workloads;
  std::optional<NetworkPolicySpec> create_network_policy;  // created before services and pods
  std::optional<NetworkPolicyChange> change_network_policy;
  std::optional<NetworkPolicyRef> delete_network_policy;
  std::vector<PodToCreate> create_pods;
  std::string key_id;  // identifies the operator's key for create_pods; "": none
  std::vector<PodThatWaits> waiting_pods;
  std::vector<PodToDelete> delete_pods;
  std::vector<ServiceToCreate> create_services;
  std::vector<ServiceRef> delete_services;
  std::vector<ServiceRef> adopt_services;
  std::vector<JobEvent> events;
  bool delete_job = false;                // its TTL has expired
  std::optional<Duration> requeue_after;  // delay until the next reconcile if no event comes first

  bool operator==(const Verdict&) const = default;
};

// Returns a name of the form `<job>.<16 hex digits>`, which is the same for equal causes of the
// same job (by UID).
std::string EventName(const api::TFJob& job, std::string_view cause);

Json Print(const Verdict& verdict);

}  // namespace tfjob::policy
