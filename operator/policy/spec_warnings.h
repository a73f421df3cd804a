// Warnings about a spec that is accepted although part of it has no effect or is probably a
// mistake.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

// Sent once, when the job is first seen: a template that sets restartPolicy, or another scheduler
// than the gang's; several chiefs; minAvailable above the total.
std::vector<Event> WarnAboutSpec(const api::TFJob& job, const Gang& gang);

// Of a job that has started: an annotation that is wrong since, once for each wrong word.
std::vector<Event> WarnAboutAnnotations(const api::TFJob& job);

}  // namespace tfjob::policy
