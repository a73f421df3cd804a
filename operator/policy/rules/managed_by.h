// Decides which controller manages a job.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::policy {

inline constexpr char kManagedByUs[] = "kubeflow.org/training-operator";

// True if spec.runPolicy.managedBy hands the job to another controller (MultiKueue); the job is
// then not touched at all. An empty name also means another controller.
bool IsManagedElsewhere(const api::TFJob& job);

}  // namespace tfjob::policy
