// Which replicas speak for a job.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::view {

// Chief, master or worker 0: whose progress is that of the job.
std::optional<policy::Slot> TrainingSlot(const api::TFJob& job);
std::optional<policy::Slot> EvaluationSlot(const api::TFJob& job);

}  // namespace tfjob::view
