// Decides which controller manages a job.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::policy {

inline constexpr char kManagedByUs[] = "kubeflow.org/training-operator";

// Returns true if spec.runPolicy.managedBy assigns the job to another controller, such as
// MultiKueue. An empty name counts as another controller. The operator ignores such a job
// completely.
bool IsManagedElsewhere(const api::TFJob& job);

}  // namespace tfjob::policy
