// Remembers replicas that have done their work, in status.replicaStatuses[T].completedIndexes.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Adds the indexes that are done and not yet recorded, including those that a scale-down is about
// to delete; returns their pods.
std::vector<const objects::Pod*> RememberCompleted(const api::TFJob& job, const Replicas& replicas,
                                                   api::TFJobStatus& status);

}  // namespace tfjob::policy
