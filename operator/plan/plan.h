// Turns a verdict and the desired objects into the calls to make, in order. operator/control makes
// the calls:
//
//   1. adopt services; change the pod group and the NetworkPolicy; create the workload, the pod
//      group, the NetworkPolicy, services and pods, in this order (objects of one kind may be
//      created concurrently)
//   2. write the status, if it is set; on Aborted, skip the other steps, read the job and decide
//      again
//   3. delete objects, each with its UID as a precondition; NotFound and Aborted mean that the
//      object is already gone
//   4. send events
//   5. requeue the job
//
// The plan that resumes a job does not create or change any objects yet. It writes the status and
// requests another reconcile immediately.
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

// A merge patch that adds the owner reference to an orphan service, with the service's UID as
// a precondition.
struct Adopt {
  std::string name;
  std::shared_ptr<const Json> patch;
};

// A merge patch that changes a pod group or a NetworkPolicy to match the spec.
struct Change {
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
  std::optional<Change> change_pod_group;
  std::optional<Change> change_network_policy;
  // The objects to create. render::Desired::Build builds them. They are grouped by kind: the
  // workload, the pod group, the NetworkPolicy, services, pods. The pod group and the NetworkPolicy
  // precede the pods: a pod that is created before its group would be placed alone, and a pod that
  // is created before the policy would be unprotected.
  std::vector<render::DesiredObject> creates;
  // The TFJob to write to the status subresource, with the resourceVersion that the decision was
  // based on; nullptr if the status does not change.
  std::shared_ptr<const Json> status;
  std::vector<Delete> deletes;  // grouped by kind
  std::vector<NamedEvent> events;
  std::optional<Duration> requeue_after;

  // Returns true if the plan contains no calls. requeue_after may still be set.
  bool empty() const;
};

// Returns the plan. `verdict` and `desired` must be results for the same job and snapshot.
Plan MakePlan(const api::TFJob& job, const policy::Verdict& verdict, const render::Desired& desired,
              const policy::Snapshot& snapshot);

Json Print(const Plan& plan);

}  // namespace tfjob::plan
