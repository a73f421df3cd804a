// spec.runPolicy.backoffLimit.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Over all types but those with policy Never: whether the recreations now due would exceed the
// limit, or the restarts so far, those of living pods' containers included, have reached it while a
// living pod's containers restart (limit 0: exceed 0). With restartScope Job one look needs one
// recreation at most. Disruptions need none. No limit: never.
bool ExceedsBackoffLimit(const api::TFJob& job, const api::TFJobStatus& status,
                         const Replicas& replicas);

}  // namespace tfjob::policy
