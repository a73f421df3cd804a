// spec.runPolicy.ttlSecondsAfterFinished.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// What is left until a job that ended is deleted; zero or less when it is time. Counted from
// completionTime, or, where an older operator left none, from the end's condition. Nothing for a
// job that goes on, is suspended, or has no TTL.
std::optional<Duration> TimeToLive(const api::TFJob& job, const api::TFJobStatus& status, Time now);

}  // namespace tfjob::policy
