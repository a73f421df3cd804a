// Finds the pods that the status has counted but that no longer exist.
#pragma once

#include <set>
#include <string_view>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Returns the UIDs in status.replicaStatuses[T].replacing, for all types T, whose pods the snapshot
// does not contain. Pods in Snapshot::departed do not count as gone, because they have not been
// judged yet. The result refers to `status`.
std::set<std::string_view> CountedAndGone(const api::TFJobStatus& status, const Snapshot& snapshot);

}  // namespace tfjob::policy
