// Records in status.replicaStatuses[T].completedIndexes which replicas have done their work.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Records the completed indexes that are not recorded yet, even if a scale-down is about to delete
// their pods. Returns the pods of the newly recorded indexes.
std::vector<const objects::Pod*> RememberCompleted(const api::TFJob& job, const Replicas& replicas,
                                                   api::TFJobStatus& status);

}  // namespace tfjob::policy
