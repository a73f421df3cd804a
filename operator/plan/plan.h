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

#include "operator/objects/kind.h"
#include "operator/plan/named_event.h"
#include "operator/render/desired_object.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob::api {
struct TFJob;
}
namespace tfjob::policy {
struct Snapshot;
struct Verdict;
}  // namespace tfjob::policy
namespace tfjob::render {
class Desired;
}

namespace tfjob::plan {

// A merge patch that gives an orphan service its owner reference (with its UID as a precondition).
struct Adopt {
  std::string name;
  std::shared_ptr<const Json> patch;
};

// A merge patch that brings the pod group into step with the spec.
struct ChangePodGroup {
  objects::Kind kind = objects::Kind::kPodGroup;
  std::string name;
  std::shared_ptr<const Json> patch;
};

struct Delete {
  objects::Kind kind = objects::Kind::kPod;
  std::string name;
  std::string uid;
  std::optional<int64_t> grace_period_seconds;
};

struct Plan {
  std::vector<Adopt> adopts;
  std::optional<ChangePodGroup> change_pod_group;
  // Built by render::Desired::Build. Those of one kind follow each other: the workload, the pod
  // group, services, pods. A pod created without its group would be placed alone.
  std::vector<render::DesiredObject> creates;
  // The TFJob to send to the status subresource, with the resourceVersion on which it was decided;
  // nullptr if the status does not change.
  std::shared_ptr<const Json> status;
  std::vector<Delete> deletes;  // those of one kind follow each other
  std::vector<NamedEvent> events;
  std::optional<Duration> requeue_after;

  // True if there is nothing to write; there may still be a time to requeue.
  bool empty() const;
};

Plan MakePlan(const api::TFJob& job, const policy::Verdict& verdict, const render::Desired& desired,
              const policy::Snapshot& snapshot);

Json Print(const Plan& plan);

}  // namespace tfjob::plan
