// Determines how long the recreation of an index is delayed after the loss of its pod.
#pragma once

#include <optional>

#include "operator/policy/facts/decision_options.h"
#include "operator/policy/facts/history.h"

namespace tfjob::policy {

// Returns the delay before the next recreation of an index that has been recreated `recreations`
// times since the count was last reset: by default 0 s, 1 s, 2 s, 4 s … up to the maximum.
Duration RecreationDelay(int32_t recreations, const DecisionOptions& options);

// Returns the earliest time, on the steady clock, at which the slot's next pod may be created. If
// no pod was lost, returns nullopt: the pod may be created now.
std::optional<Duration> NotBefore(const IndexHistory* index, const DecisionOptions& options);

}  // namespace tfjob::policy
