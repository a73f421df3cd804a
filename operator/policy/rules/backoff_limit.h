// Implements spec.runPolicy.backoffLimit.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Considers all types except those with policy Never. True if the recreations now due would exceed
// the limit, or if the restarts so far, including those of live pods' containers, have reached it
// while containers of a live pod restart (limit 0: have exceeded 0). With restartScope Job, one
// reconcile needs at most one recreation. Disruptions need none. Always false without a limit.
bool ExceedsBackoffLimit(const api::TFJob& job, const api::TFJobStatus& status,
                         const Replicas& replicas);

}  // namespace tfjob::policy
