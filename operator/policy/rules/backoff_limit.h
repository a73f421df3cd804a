// Implements spec.runPolicy.backoffLimit.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Returns whether the job has a limit and has used it up. That is the case
// - if recreations are due now, and would bring the number of restarts above the limit; or
// - if containers of running pods have restarted, and the number of restarts including theirs has
//   reached the limit (or, if the limit is 0, exceeds it).
// Types with policy Never do not count. With restartScope Job, all failures of a reconcile count as
// one recreation. Disruptions do not count as recreations.
// A job does not end merely because the number in its status is above the limit: the limit may have
// been lowered, or a suspension may have counted restarts of containers that no earlier reconcile
// saw. The replicas that are running now have not failed, so the job keeps running until the next
// restart.
bool ExceedsBackoffLimit(const api::TFJob& job, const api::TFJobStatus& status,
                         const Replicas& replicas);

}  // namespace tfjob::policy
