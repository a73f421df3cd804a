// Limits the causes in History::reported to those that can occur again, so that they do not
// accumulate over the life of a job.
#pragma once

#include <string_view>

namespace tfjob::policy {

struct History;
struct Snapshot;

// The prefix of the causes of warnings about repeated changes to the NetworkPolicy.
inline constexpr std::string_view kPolicyChangesCause = "network-policy-changes/";

// Removes from history.reported each cause that refers by UID to an object that is in neither
// `snapshot` nor `history` any more, each cause that contains an earlier restart count of a
// container, and the causes of changes to the NetworkPolicy once `history` counts none. All other
// causes stay.
void ForgetSettledCauses(const Snapshot& snapshot, History& history);

}  // namespace tfjob::policy
