// Implements spec.runPolicy.suspend.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// True if nothing of the job may run now: it is to be suspended, or it is being resumed while pods
// from before still exist. A resumed job starts over, so the old pods must be gone first.
bool MustStandStill(const api::TFJob& job, const Snapshot& snapshot);

// Writes Running False (if it was True) and Suspended True. Returns whether that is news.
bool WriteSuspended(const api::TFJob& job, Time now, api::TFJobStatus& status);

// If the job was suspended: writes Suspended False and a new startTime, and forgets what Chief,
// Master and Worker completed. Returns whether the job was suspended.
bool WriteResumed(const api::TFJob& job, Time now, api::TFJobStatus& status);

}  // namespace tfjob::policy
