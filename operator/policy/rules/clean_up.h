// Implements spec.runPolicy.cleanPodPolicy: which pods are deleted once the job has ended. Its
// services are always deleted.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"

namespace tfjob::policy {

// True if the policy deletes the pod. None: no pod. Running: pods in phase Running or Pending,
// except one whose containers have all exited with 0 and whose phase merely lags. All: every pod.
// Never a pod that is already terminating.
bool IsCleanedUp(const objects::Pod& pod, api::CleanPodPolicy policy);

}  // namespace tfjob::policy
