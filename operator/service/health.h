// Decides whether the control loop's threads are alive.
#pragma once

#include "operator/control/measurements/numbers.h"
#include "runtime/base/status.h"

namespace tfjob::service {

// Returns DeadlineExceeded if a thread that works on a key has not completed a create or delete for
// 15 min. Each create and delete of a reconcile takes much less time than this, even if the server
// is slow, although all of them together may take longer.
Status CheckWorkers(const control::QueueNumbers& queue);

}  // namespace tfjob::service
