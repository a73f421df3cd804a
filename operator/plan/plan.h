// Turns a verdict and the desired objects into the calls to make, in order. operator/control
// carries them out:
//
//   1. adopts; the pod group, created (after its workload) or changed; creates (services before
//      pods), several at a time is fine
//   2. the status, if set: one write; on Aborted, read the job and decide again, do nothing below
//   3. deletes, each with its UID as a precondition; NotFound and Aborted mean that the object is
//      already gone
//   4. events
//   5. requeue
//
// The plan of a resume creates nothing yet: it writes the status and requests another
// reconcile at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"
#include "operator/render/render.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::plan {

// A merge patch that gives an orphan service its owner reference (with its UID as a precondition).
struct Adopt {
  std::string name;
  std::shared_ptr<const Json> patch;
};

// A merge patch that brings the pod group into step with the spec.
struct ChangePodGroup {
  policy::GangScheduler scheduler = policy::GangScheduler::kNone;
  std::string name;
  std::shared_ptr<const Json> patch;
};

enum class DeleteKind { kPod, kService, kPodGroup, kWorkload, kJob };

struct Delete {
  DeleteKind kind = DeleteKind::kPod;
  std::string name;
  std::string uid;
  std::optional<int64_t> grace_period_seconds;
  policy::GangScheduler scheduler = policy::GangScheduler::kNone;  // of a pod group
};

// An event and the name of its object.
struct NamedEvent {
  std::string name;
  objects::Event event;
  std::string cause;  // to remember in History::reported if standing
  bool standing = false;
};

struct Plan {
  std::vector<Adopt> adopts;
  std::optional<ChangePodGroup> change_pod_group;
  std::vector<render::DesiredObject> creates;  // built by render::Desired::Build
  // The TFJob to send to the status subresource, with the resourceVersion on which it was decided;
  // nullptr if the status does not change.
  std::shared_ptr<const Json> status;
  std::vector<Delete> deletes;
  std::vector<NamedEvent> events;
  std::optional<Duration> requeue_after;

  // True if there is nothing to write; there may still be a time to requeue.
  bool empty() const;
};

Plan MakePlan(const api::TFJob& job, const policy::Verdict& verdict, const render::Desired& desired,
              const policy::Snapshot& snapshot);

// Return the events that follow an action: "Created pods: x, y" under SuccessfulCreatePod, "Deleted
// service: x", one for all objects of a kind; and failures, "Error creating: …", as standing
// warnings. Refusals that differ only in numbers share one cause, but have names of their own.
struct Child {
  std::string name;
  std::string uid;
};
NamedEvent Created(const api::TFJob& job, render::Kind kind, const std::vector<Child>& children);
NamedEvent CreateFailed(const api::TFJob& job, render::Kind kind, const Status& error);
// The pod group could not be brought into step with the spec.
NamedEvent ChangeFailed(const api::TFJob& job, const Status& error);
// True if `cause` is that of a CreateFailed or ChangeFailed.
bool IsCreateFailed(std::string_view cause);
NamedEvent Deleted(const api::TFJob& job, DeleteKind kind, const std::vector<Child>& children);
NamedEvent DeleteFailed(const api::TFJob& job, const Delete& failed, const Status& error);

// Reports that a pod is not a member of the group it was created for.
NamedEvent SchedulingGroupDropped(const api::TFJob& job, const std::string& pod);

Json Print(const Plan& plan);

}  // namespace tfjob::plan
