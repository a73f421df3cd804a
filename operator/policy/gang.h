// Manages gang scheduling: the job's pod group is created before its pods, kept in step with the
// spec, and deleted when the job ends.
#pragma once

#include "operator/policy/draft.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::policy {

// Returns the gang settings of the job. Its annotation tfjob.dev/gang-scheduler takes precedence
// over the operator's choice; an unknown value counts as absent. kNone for a job without replicas.
Gang GangOf(const api::TFJob& job, const Options& options);

// Returns the wanted spec. minMember is minAvailable, or else all replicas. minResources is what
// the job specifies, or else the sum of the container requests (limits, if there are no requests)
// of the first minMember pods, in the order Chief, Master, PS, Worker, Evaluator.
PodGroupSpec WantedPodGroup(const api::TFJob& job, const Gang& gang);

// Returns why the server cannot have the group at all; "" if it can.
std::string ObstacleOf(const Gang& gang, const Snapshot& snapshot);

// True if pods have to wait for the group. Volcano requires this until it admits the group to its
// queue. Kubernetes' own group must be known to the server, and the previous one must be gone.
bool WaitsForQueue(const Gang& gang, const Snapshot& snapshot);

// Creates the group, or changes it if the spec differs; deletes the groups of other schedulers.
// native_gang.h contains what is specific to Kubernetes' own scheduler.
void WantPodGroup(Draft& draft);
void DropPodGroups(Draft& draft);

}  // namespace tfjob::policy
