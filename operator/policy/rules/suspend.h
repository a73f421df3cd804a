// spec.runPolicy.suspend.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Whether nothing of the job may run now: it is to be suspended, or it is resumed while pods from
// before are still there. A resumed job begins anew, so it begins with an empty house.
bool MustStandStill(const api::TFJob& job, const Snapshot& snapshot);

// Writes Running False (if it was True) and Suspended True. Returns whether that is news.
bool WriteSuspended(const api::TFJob& job, Time now, api::TFJobStatus& status);

// If the job was suspended: writes Suspended False, a new startTime, and forgets what Chief, Master
// and Worker completed. Returns whether it was.
bool WriteResumed(const api::TFJob& job, Time now, api::TFJobStatus& status);

}  // namespace tfjob::policy
