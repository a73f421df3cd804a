// Implements spec.runPolicy.suspend.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Returns true if none of the job's pods may run now: the job must be suspended, or it is being
// resumed while pods from before the suspension still exist. A resumed job starts over, so it must
// wait until these pods are gone.
bool MustStandStill(const api::TFJob& job, const Snapshot& snapshot);

// Sets Running to False (if it was True) and Suspended to True. Returns whether Suspended changed.
bool WriteSuspended(const api::TFJob& job, Time now, api::TFJobStatus& status);

// If the job was suspended, sets Suspended to False and startTime to `now`, and forgets which
// Chiefs, Masters and Workers had completed. Returns whether the job was suspended.
bool WriteResumed(const api::TFJob& job, Time now, api::TFJobStatus& status);

}  // namespace tfjob::policy
