// Wanted names that strangers hold: they block one slot alone, and are tried again every
// options.blocked_retry.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/policy/draft.h"

namespace tfjob::policy {

// What is left until the name may be tried again; nothing when it may be tried now.
std::optional<Duration> TimeBlocked(const std::map<std::string, BlockedName>& names,
                                    const std::string& name, Time now, const Options& options);

// Tells of every blocked name, once a holder, and has the job looked at again.
void WarnAboutBlockedNames(Draft& draft);

}  // namespace tfjob::policy
