// Implements spec.runPolicy.activeDeadlineSeconds.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// Returns the time left until the deadline; zero or less if it has passed. The deadline counts from
// startTime, which does not change during a suspension but is set again when the job is resumed.
// Returns nullopt if the job has no deadline or has not started.
std::optional<Duration> TimeToDeadline(const api::TFJob& job, const api::TFJobStatus& status,
                                       Time now);

}  // namespace tfjob::policy
