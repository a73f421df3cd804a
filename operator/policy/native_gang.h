// What is special about gangs of Kubernetes' own scheduler (scheduling.k8s.io): a Workload comes before the PodGroup, both
// bear the job's name, and the server may have them in a version that this project does not know, or not at all.
//
// The scheduler places pods when minCount members of the group exist that have not ended. Once the group is placed, a replica
// that restarts may be one of fewer: others have completed, or the job was scaled down and the group, as v1alpha2 has it, is
// for ever as it was made. Such a pod is created alone, since as a member it would wait for ever.
#pragma once

#include <string>

#include "operator/policy/draft.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::policy {

// The first scheduler that a template names; "" when none does.
std::string SchedulerOfTemplates(const api::TFJob& job);

std::string NativeObstacle(const Snapshot& snapshot);

// True with an obstacle, and while a group or Workload is being deleted that no living pod needs any more.
bool NativeMustWait(const Gang& gang, const Snapshot& snapshot);

// Creates both, has minCount follow the spec where the version allows it, and says so where it does not: there the group is
// made anew when none of the job's pods lives.
void WantNativeGroup(const PodGroupSpec& wanted, Draft& draft);

void DropWorkloads(Draft& draft);

}  // namespace tfjob::policy
