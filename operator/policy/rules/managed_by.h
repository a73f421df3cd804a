// Whose job it is.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::policy {

inline constexpr char kManagedByUs[] = "kubeflow.org/training-operator";

// Whether spec.runPolicy.managedBy hands the job to another controller (MultiKueue): it is then not
// touched at all. An empty name is somebody else's too.
bool IsManagedElsewhere(const api::TFJob& job);

}  // namespace tfjob::policy
