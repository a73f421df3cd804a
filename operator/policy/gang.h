// Manages gang scheduling. The job's pod group is created before its pods, updated when the spec
// changes, and deleted when the job is suspended or has ended.
#pragma once

#include "operator/policy/draft.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::policy {

// Returns the gang settings of the job. The job's annotation tfjob.dev/gang-scheduler takes
// precedence over the operator's setting, unless the annotation's value is unknown or the operator
// enforces its setting. In a native gang that is not enforced, scheduler_name is that of the first
// pod template with a schedulerName. A job without replicas has the scheduler kNone.
Gang GangOf(const api::TFJob& job, const DecisionOptions& options);

// Returns the spec that the pod group should have. minMember is minAvailable if it is set,
// otherwise the total number of replicas, and at least 1. minResources is the job's own setting, if
// it has one. Otherwise, it is the sum of the container requests of the first minMember pods, in
// the order Chief, Master, PS, Worker, Evaluator; for a container without requests, its limits are
// used.
PodGroupSpec WantedPodGroup(const api::TFJob& job, const Gang& gang);

// Returns why the pod group cannot be created on this server; "" if it can.
std::string ObstacleOf(const Gang& gang, const Snapshot& snapshot);

// Returns true if pods have to wait for the pod group. They wait for a Volcano group until it is
// admitted to its queue. NativeMustWait describes the wait for a native group.
bool WaitsForQueue(const Gang& gang, const Snapshot& snapshot);

// WantPodGroup creates the pod group, or changes it if its spec differs from the wanted spec, and
// deletes the groups of other schedulers. native_gang.h implements the parts that are specific to
// Kubernetes' own scheduler.
void WantPodGroup(Draft& draft);
void DropPodGroups(Draft& draft);

}  // namespace tfjob::policy
