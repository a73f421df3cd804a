// Decides which events a reconcile emits: one per cause. Most of them accompany a change of status,
// so only one reconcile emits them. The others are standing (verdict.h).
#pragma once

#include <vector>

#include "operator/policy/draft.h"
#include "operator/policy/rules/restarts.h"

namespace tfjob::policy {

// If the pod's exit code is known, reports it: "Pod: ns.x exited with code 1".
void ReportExit(const objects::Pod& pod, Draft& draft);

// Reports, at the end of the job, the exits of failed pods that were neither tolerated nor
// restarted, and are therefore not reported yet.
void ReportExitsAtEnd(Draft& draft);

// Reports each exit. Also emits a TFJobRestarting event for each type that restarts in this
// reconcile, and another one if pods of the type vanished.
void ReportRestarts(const std::vector<Restarted>& restarts, Draft& draft);

// Reports pods that make no progress, and failures that are tolerated. Neither changes the
// job's conditions.
void ReportReplicas(Draft& draft);

}  // namespace tfjob::policy
