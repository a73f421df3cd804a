// The Workload and the PodGroup of a job in the forms of scheduling.k8s.io, one encoder a version, and what makes a pod a
// member. https://github.com/kubernetes/api (scheduling/v1alpha2 of 1.36, scheduling/v1beta1 of 1.37)
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/gang_scheduler.h"
#include "runtime/base/json.h"

namespace tfjob::render {

// Both bear the job's name. `version` is not kNone.
Json BuildWorkload(const api::TFJob& job, policy::NativeVersion version,
                   const policy::PodGroupSpec& spec);
Json BuildNativeGroup(const api::TFJob& job, policy::NativeVersion version,
                      const policy::PodGroupSpec& spec);

// A merge patch's spec that changes how many pods start together: of versions that allow it.
Json PatchNativeGroup(const policy::PodGroupSpec& spec);

// The specs alone. The Workload has one template, from which the PodGroup named `workload` too is made.
namespace v1alpha2 {
Json WorkloadSpec(const std::string& job, int64_t min_count);
Json PodGroupSpec(const std::string& workload, int64_t min_count);
}  // namespace v1alpha2
namespace v1beta1 {
Json WorkloadSpec(const std::string& job, int64_t min_count);
Json PodGroupSpec(const std::string& workload, int64_t min_count);
}  // namespace v1beta1

}  // namespace tfjob::render
