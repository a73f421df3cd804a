// Handles wanted pods and services whose names belong to objects of other owners. Such a name
// blocks only its own slot. The creation of the slot's pod or service is retried every
// options.blocked_retry.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/policy/draft.h"
#include "operator/policy/facts/history.h"

namespace tfjob::policy {

// Returns the time left until the next attempt to create `name`; nullopt if it may be created now.
// `now` is Snapshot::steady_now.
std::optional<Duration> TimeBlocked(const std::map<std::string, BlockedName>& names,
                                    const std::string& name, Duration now,
                                    const DecisionOptions& options);

// Emits one event per blocked name and holder, and requeues the job if any name is blocked.
void WarnAboutBlockedNames(Draft& draft);

}  // namespace tfjob::policy
