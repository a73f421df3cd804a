// Limits the causes in History::reported to those that can occur again, so that they do not
// accumulate over the life of a job.
#pragma once

namespace tfjob::policy {

struct History;
struct Snapshot;

// Removes from history.reported each cause that refers by UID to an object that neither `snapshot`
// nor `history` still shows, and each cause that contains an earlier restart count of a container.
// All other causes stay.
void ForgetSettledCauses(const Snapshot& snapshot, History& history);

}  // namespace tfjob::policy
