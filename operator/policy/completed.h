// The memory of replicas that have done their work: status.replicaStatuses[T].completedIndexes.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/replicas.h"

namespace tfjob::policy {

// Adds the indexes that are done and not yet remembered; returns their pods, in slot order.
std::vector<const objects::Pod*> RememberCompleted(const Replicas& replicas,
                                                   api::TFJobStatus& status);

}  // namespace tfjob::policy
