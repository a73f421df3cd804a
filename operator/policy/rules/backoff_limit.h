// Implements spec.runPolicy.backoffLimit.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Returns whether the job has a limit and has used it up. This is the case
// - if recreations are due now, and would raise the number of restarts above the limit; or
// - if containers of running pods have restarted, and the number of restarts including theirs has
//   reached the limit (or, if the limit is 0, exceeds it).
// Types with policy Never do not count. With restartScope Job, all failures of a reconcile count as
// one recreation. Disruptions do not count as recreations. If the number in the status is above the
// limit, this alone does not end the job: the limit may have been lowered, or a suspension may have
// counted restarts of containers that no earlier reconcile saw. In these cases, the replicas that
// are running now have not failed, so the job keeps running until the next restart.
bool ExceedsBackoffLimit(const api::TFJob& job, const api::TFJobStatus& status,
                         const Replicas& replicas);

}  // namespace tfjob::policy
