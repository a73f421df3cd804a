// Implements spec.runPolicy.ttlSecondsAfterFinished.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// Returns the time left until a job that has ended is deleted; zero or less once it is due. Counted
// from completionTime or, if an older operator left none, from the end's condition. nullopt for a
// job that has not ended, is suspended, or has no TTL.
std::optional<Duration> TimeToLive(const api::TFJob& job, const api::TFJobStatus& status, Time now);

}  // namespace tfjob::policy
