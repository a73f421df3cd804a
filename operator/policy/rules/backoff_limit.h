// Implements spec.runPolicy.backoffLimit.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// True if recreations are due now and would bring the number of restarts above the limit, or if the
// container of a live pod has restarted and the number of restarts, including those of such
// containers, has reached the limit (with limit 0: exceeds it). Types with policy Never do not
// count. With restartScope Job, all failures of a reconcile count as one recreation. Disruptions do
// not count as recreations. Always false if the job has no limit.
bool ExceedsBackoffLimit(const api::TFJob& job, const api::TFJobStatus& status,
                         const Replicas& replicas);

}  // namespace tfjob::policy
