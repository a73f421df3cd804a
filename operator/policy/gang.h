// Gang scheduling: the pod group of a job, created before its pods, kept in step with the spec, gone with its end.
#pragma once

#include "operator/policy/draft.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::policy {

// The job's annotation tfjob.dev/gang-scheduler over the operator's choice; a word that is none counts as absent. None for a job without replicas.
Gang GangOf(const api::TFJob& job, const Options& options);

// minMember is minAvailable or all replicas; minResources what the job says, or the sum over the first minMember pods of
// their containers' requests (limits, where there are no requests), in the order Chief, Master, PS, Worker, Evaluator.
PodGroupSpec WantedPodGroup(const api::TFJob& job, const Gang& gang);

// Why the server cannot have the group at all; "" when it can.
std::string ObstacleOf(const Gang& gang, const Snapshot& snapshot);

// Whether pods have to wait for the group: Volcano asks for it until it lets the group into its queue; Kubernetes' own has
// to be known to the server, and the one before it gone.
bool WaitsForQueue(const Gang& gang, const Snapshot& snapshot);

// Creates the group, or changes it where the spec wants it otherwise; deletes those of other schedulers. What is special
// about Kubernetes' own is in native_gang.h.
void WantPodGroup(Draft& draft);
void DropPodGroups(Draft& draft);

}  // namespace tfjob::policy
