// spec.runPolicy.cleanPodPolicy: which pods go when the job has ended. Its services always go.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"

namespace tfjob::policy {

// None: no pod. Running: those in phase Running or Pending, but for one whose containers have all
// ended with 0 and whose phase only lags. All: every pod. Never one that is going already.
bool IsCleanedUp(const objects::Pod& pod, api::CleanPodPolicy policy);

}  // namespace tfjob::policy
