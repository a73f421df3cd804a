// What is to be done about a job: its next status and the objects that should exist, come and go. A
// value without any reference to what it was decided from; printable; equal inputs give equal
// verdicts, lists in a fixed order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/objects/event.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob::policy {

// Which line of Decide's list settled the job.
enum class Stage {
  kIgnored,  // another controller's job (managedBy), or one that is being deleted: nothing is done
  kSuspended,  // nothing may exist; also while a resumed job waits for its old pods to go
  kRunning,    // replicas are wanted
  kEnded,      // Succeeded or Failed stands in the status: clean up, then TTL
};
std::string_view Name(Stage stage);  // "Ignored", …

struct PodToCreate {
  Slot slot;
  std::string name;
  int32_t attempt = 0;  // status.attempt: the label tfjob.dev/attempt and TFJOB_ATTEMPT

  bool operator==(const PodToCreate&) const = default;
};

// A slot without a pod, whose pod may not be created yet.
struct PodThatWaits {
  Slot slot;
  std::string name;
  std::optional<Time> not_before;  // nothing: an event (the old pod's deletion) will wake the job
  std::string why;                 // "the pod before it is terminating", "restart delay", …

  bool operator==(const PodThatWaits&) const = default;
};

enum class DeleteReason {
  kRestart,     // failed, and is replaced
  kNewAttempt,  // belongs to an attempt that is over
  kScaleDown,   // index beyond `replicas`, a type that left the spec, or a second pod of a slot
  kSuspend,
  kCleanUp,   // the job ended
  kLostNode,  // terminating on a node that is gone: grace period 0
};
std::string_view Name(DeleteReason reason);  // "Restart", …

struct PodToDelete {
  std::string name;
  std::string uid;  // a precondition of the delete
  std::optional<int64_t> grace_period_seconds;
  DeleteReason reason = DeleteReason::kRestart;

  bool operator==(const PodToDelete&) const = default;
};

struct ServiceToCreate {
  Slot slot;
  std::string name;

  bool operator==(const ServiceToCreate&) const = default;
};

// A service to delete, or to adopt by a patch of its owner references.
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

// A Workload of Kubernetes itself.
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

// An event on the job. `cause` names what happened so that equal causes are equal texts at every
// look and in every process ("exit/<pod uid>"): the event's object name is derived from it
// (EventName), so a second creation meets AlreadyExists and is no error.
struct Event {
  objects::EventType type = objects::EventType::kNormal;
  std::string reason;
  std::string message;
  std::string cause;
  // False: it tells of a change of status, and is seen in no later look. True: its cause may still
  // stand at the next look; remember it in History::reported.
  bool standing = false;

  bool operator==(const Event&) const = default;
};

struct Verdict {
  Stage stage = Stage::kIgnored;
  api::TFJobStatus status;                      // equal to the job's when nothing changed
  Gang gang;                                    // that new pods are members of
  std::optional<PodGroupSpec> create_workload;  // before the pod group
  std::optional<PodGroupSpec> create_pod_group;
  std::optional<PodGroupChange> change_pod_group;
  std::vector<PodGroupRef> delete_pod_groups;
  std::vector<WorkloadRef> delete_workloads;
  std::vector<PodToCreate> create_pods;
  std::vector<PodThatWaits> waiting_pods;
  std::vector<PodToDelete> delete_pods;
  std::vector<ServiceToCreate> create_services;
  std::vector<ServiceRef> delete_services;
  std::vector<ServiceRef> adopt_services;
  std::vector<Event> events;
  bool delete_job = false;                // its time to live is over
  std::optional<Duration> requeue_after;  // look again then, if nothing happens before

  bool operator==(const Verdict&) const = default;
};

// `<job>.<16 hex digits>`: the same for the same cause at the same job (by UID).
std::string EventName(const api::TFJob& job, std::string_view cause);

Json Print(const Verdict& verdict);

}  // namespace tfjob::policy
