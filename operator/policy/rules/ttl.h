// Implements spec.runPolicy.ttlSecondsAfterFinished.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// Returns the time left until a job that has ended must be deleted; zero or less if the deletion is
// due. The TTL counts from completionTime or, if an older operator did not write one, from the last
// transition of the final condition. Returns nullopt if the job has not ended, has
// spec.runPolicy.suspend set, or has no valid TTL.
std::optional<Duration> TimeToLive(const api::TFJob& job, const api::TFJobStatus& status, Time now);

}  // namespace tfjob::policy
