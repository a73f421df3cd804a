// Implements spec.runPolicy.activeDeadlineSeconds.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// Returns the time left until the deadline, counted from startTime (which suspension keeps
// and resuming resets); zero or less once it has passed. nullopt without a deadline or
// before the start.
std::optional<Duration> TimeToDeadline(const api::TFJob& job, const api::TFJobStatus& status,
                                       Time now);

}  // namespace tfjob::policy
