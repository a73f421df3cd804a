// When a job counts as running, and how long a restart stands in the way.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Whether the replica that drives the job runs: any Chief or Master; else any Worker; else any
// replica.
bool DriverRuns(const Replicas& replicas);

// Whether every slot that a restart emptied has its new pod: no slot that is to hold a living pod
// lacks one. Names that strangers hold are not waited for.
bool ReplacementsExist(const api::TFJob& job, const Replicas& replicas, const History* history);

}  // namespace tfjob::policy
