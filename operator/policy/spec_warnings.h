// Warns about specs that are accepted although a part of them has no effect or is probably a
// mistake.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

// Returns the warnings that are sent once, when the job is first seen: a pod template sets
// restartPolicy or names a scheduler other than the gang's, the job has several chiefs, or
// minAvailable is below 0 or above the total number of replicas.
std::vector<JobEvent> WarnAboutSpec(const api::TFJob& job, const Gang& gang);

// Returns the warnings about invalid annotations of a job that has started, and about an annotation
// that has no effect because `gang` is enforced. Each value of an annotation has its own cause, so
// each value is reported once.
std::vector<JobEvent> WarnAboutAnnotations(const api::TFJob& job, const Gang& gang);

}  // namespace tfjob::policy
