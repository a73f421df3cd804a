// Warns about a spec that is accepted although part of it has no effect or is probably a mistake.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

// Returns the warnings to send once, when the job is first seen: a template that sets
// restartPolicy, or a scheduler other than the gang's; several chiefs; minAvailable
// above the total.
std::vector<Event> WarnAboutSpec(const api::TFJob& job, const Gang& gang);

// Returns the warnings for a job that has started: annotations that have become invalid since, once
// per invalid value.
std::vector<Event> WarnAboutAnnotations(const api::TFJob& job);

}  // namespace tfjob::policy
