// Selects the replicas that report progress for a job.
#pragma once

#include <optional>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::view {

// Returns the replica that reports the job's progress: the chief, or else the master, or else
// worker 0; nullopt if the job has none of them.
std::optional<policy::Slot> TrainingSlot(const api::TFJob& job);
std::optional<policy::Slot> EvaluationSlot(const api::TFJob& job);

}  // namespace tfjob::view
