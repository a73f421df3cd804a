// Decides when a job counts as running, and how long a restart prevents it.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

struct History;

// True if the replica that drives the job runs: any Chief or Master; otherwise any Worker;
// otherwise any replica.
bool DriverRuns(const Replicas& replicas);

// True if every slot emptied by a restart has its new pod: no slot that should hold a live pod
// lacks one. Names held by other owners are not waited for.
bool ReplacementsExist(const api::TFJob& job, const Replicas& replicas, const History* history);

}  // namespace tfjob::policy
