// Decides which events a reconcile emits: one per cause. Most of them accompany a change of status,
// so only one reconcile emits them. The other events are standing (verdict.h).
#pragma once

#include <vector>

#include "operator/policy/draft.h"
#include "operator/policy/rules/restarts.h"

namespace tfjob::policy {

// Reports the pod's exit code, if it is known: "Pod: ns.x exited with code 1".
void ReportExit(const objects::Pod& pod, Draft& draft);

// Call this in the reconcile that ends the job. Reports the losses of tasks that completed replicas
// have reported (LossesOf).
void ReportLosses(Draft& draft);

// Call this in the reconcile that ends the job. Reports the exits of failed or disrupted pods,
// except those that other events have reported because they were tolerated or followed by a
// restart.
void ReportExitsAtEnd(Draft& draft);

// Reports the exit of each pod in `restarts`. For each replica type, also emits one TFJobRestarting
// event if any of its pods failed or were disrupted, and another if any of them vanished.
void ReportRestarts(const std::vector<Restarted>& restarts, Draft& draft);

// Reports pods that make no progress, and failures that are tolerated. These do not change the
// job's conditions.
void ReportReplicas(Draft& draft);

}  // namespace tfjob::policy
