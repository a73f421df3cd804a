// Decides which events a reconcile emits: one per cause. Most accompany a change of status, which
// only one reconcile sees; the others are standing (verdict.h).
#pragma once

#include <vector>

#include "operator/policy/draft.h"
#include "operator/policy/rules/restarts.h"

namespace tfjob::policy {

// Reports "Pod: ns.x exited with code 1", if the code is known.
void ReportExit(const objects::Pod& pod, Draft& draft);

// Reports the exits that are new at the end of the job: of failures that were not tolerated before,
// or would have been restarted.
void ReportExitsAtEnd(Draft& draft);

// Reports each exit, and one TFJobRestarting per type that restarts in this reconcile (one more if
// pods of the type vanished).
void ReportRestarts(const std::vector<Restarted>& restarts, Draft& draft);

// Reports what changes nothing but is worth an event: pods that make no progress, and failures
// that are tolerated.
void ReportReplicas(Draft& draft);

}  // namespace tfjob::policy
