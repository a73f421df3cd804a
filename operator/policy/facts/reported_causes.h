// Limits the causes in History::reported to those that can occur again, so that they do not
// accumulate over the life of a job.
#pragma once

#include <string_view>

namespace tfjob::policy {

struct History;
struct Snapshot;

// The prefix of the causes of warnings about repeated changes to the NetworkPolicy.
inline constexpr std::string_view kPolicyChangesCause = "network-policy-changes/";

// Removes three kinds of causes from history.reported:
//  - those that refer by UID to an object that is no longer in `snapshot` or `history`;
//  - those that contain the restart count of a container that has been restarted again;
//  - once history.policy_changes is 0, those of warnings about changes to the NetworkPolicy.
// All other causes stay.
void ForgetSettledCauses(const Snapshot& snapshot, History& history);

}  // namespace tfjob::policy
