// Decides whether the control loop's threads are alive.
#pragma once

#include "operator/control/numbers.h"
#include "runtime/base/status.h"

namespace tfjob::service {

// Returns DeadlineExceeded if a thread has completed no create or delete for 15 min. Between two of
// these calls, a reconcile takes much less time, even if the server is slow; all its creates and
// deletes together may take longer.
Status CheckWorkers(const control::QueueNumbers& queue);

}  // namespace tfjob::service
