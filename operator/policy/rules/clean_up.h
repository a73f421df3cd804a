// Implements spec.runPolicy.cleanPodPolicy, which determines which pods are deleted once the job
// has ended. Services are always deleted.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"

namespace tfjob::policy {

// Returns whether the policy deletes the pod. None deletes no pods. Running deletes pods in phase
// Running or Pending, except a pod in phase Running whose containers have all exited with 0 (its
// phase is about to change). All deletes all pods. A pod that is already terminating is never
// deleted.
bool IsCleanedUp(const objects::Pod& pod, api::CleanPodPolicy policy);

}  // namespace tfjob::policy
