// Implements the parts that are specific to gangs of Kubernetes' own scheduler (scheduling.k8s.io).
// A Workload is created before the PodGroup, and both have the job's name. The server may lack
// these kinds, or have only versions of them that this project does not know.
//
// The scheduler places pods once the group has minCount members that have not ended. When a replica
// restarts after the group has been placed, the group may have too few members: other replicas may
// have completed, or the job may have been scaled down while the group keeps its original size (in
// v1alpha2, forever). The replica's new pod is then created outside the group, because as a member,
// it would wait forever.
#pragma once

#include <string>

#include "operator/policy/draft.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::policy {

// Returns the schedulerName of the first pod template that has one; "" if no template has one.
std::string SchedulerOfTemplates(const api::TFJob& job);

// Returns why the server cannot have the group; "" if it can.
std::string NativeObstacle(const Snapshot& snapshot);

// Returns true if no pod may be created yet. Either the server does not support the group, or the
// previous group or Workload is still being deleted and no live pod needs it.
bool NativeMustWait(const Gang& gang, const Snapshot& snapshot);

// Creates the Workload and the PodGroup. If the spec changes and the API version allows it, updates
// minCount. Otherwise, reports the difference, and recreates the group as soon as all of the job's
// pods have ended or are gone.
void WantNativeGroup(const PodGroupSpec& wanted, Draft& draft);

void DropWorkloads(Draft& draft);

}  // namespace tfjob::policy
