// spec.runPolicy.activeDeadlineSeconds.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// What is left until the deadline, counted from startTime (which suspension keeps and resume sets
// anew); zero or less when it is over. Nothing without a deadline or before the start.
std::optional<Duration> TimeToDeadline(const api::TFJob& job, const api::TFJobStatus& status,
                                       Time now);

}  // namespace tfjob::policy
