// Implements spec.runPolicy.cleanPodPolicy, which determines which pods are deleted once the job
// has ended. Services are always deleted.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"

namespace tfjob::policy {

// Returns whether the policy deletes the pod. Policy None deletes no pods, and All deletes all.
// Running deletes pods in phase Running or Pending, except a pod in phase Running whose containers
// have all exited with 0 (its phase is about to change). No policy deletes a pod that is already
// terminating.
bool IsCleanedUp(const objects::Pod& pod, api::CleanPodPolicy policy);

}  // namespace tfjob::policy
