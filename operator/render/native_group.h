// Builds a job's Workload and PodGroup for scheduling.k8s.io.
// https://github.com/kubernetes/api (scheduling/v1alpha2 of 1.36, scheduling/v1beta1 of 1.37)
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/json.h"

namespace tfjob::render {

// Return the objects to create. Both have the job's name. `version` must not be kNone.
Json BuildWorkload(const api::TFJob& job, policy::NativeVersion version,
                   const policy::PodGroupSpec& spec);
Json BuildNativeGroup(const api::TFJob& job, policy::NativeVersion version,
                      const policy::PodGroupSpec& spec);

// Returns the spec of a merge patch that changes the number of pods that start together. Only some
// versions of the API allow this.
Json PatchNativeGroup(const policy::PodGroupSpec& spec);

}  // namespace tfjob::render
