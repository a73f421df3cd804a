// Selects the replicas that report progress for a job.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::view {

// Returns the replica whose progress is that of the job: chief, master or worker 0.
std::optional<policy::Slot> TrainingSlot(const api::TFJob& job);
std::optional<policy::Slot> EvaluationSlot(const api::TFJob& job);

}  // namespace tfjob::view
