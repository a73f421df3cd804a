// Handles what is specific to gangs of Kubernetes' own scheduler (scheduling.k8s.io): a Workload
// precedes the PodGroup, both bear the job's name, and the server may have them in a version
// unknown to this project, or not at all.
//
// The scheduler places pods once minCount members of the group exist that have not ended. After the
// group has been placed, a replica that restarts may be one of fewer: others have completed, or the
// job was scaled down and the group keeps its original size forever, as in v1alpha2. Such a pod is
// created alone, because as a member it would wait forever.
#pragma once

#include <string>

#include "operator/policy/draft.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::policy {

// Returns the first scheduler named by a template; "" if none names one.
std::string SchedulerOfTemplates(const api::TFJob& job);

std::string NativeObstacle(const Snapshot& snapshot);

// True if there is an obstacle, or while a group or Workload that no live pod needs any more
// is being deleted.
bool NativeMustWait(const Gang& gang, const Snapshot& snapshot);

// Creates both, and keeps minCount in step with the spec if the version allows it. Otherwise
// reports the difference, and recreates the group once none of the job's pods is alive.
void WantNativeGroup(const PodGroupSpec& wanted, Draft& draft);

void DropWorkloads(Draft& draft);

}  // namespace tfjob::policy
