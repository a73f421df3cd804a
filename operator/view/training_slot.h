// Selects the replicas that report progress for a job.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::view {

// Returns the replica that reports the job's progress: chief, master or worker 0.
std::optional<policy::Slot> TrainingSlot(const api::TFJob& job);
std::optional<policy::Slot> EvaluationSlot(const api::TFJob& job);

}  // namespace tfjob::view
