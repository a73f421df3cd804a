#include "operator/view/training_slot.h"

#include "operator/api/replicas.h"

namespace tfjob::view {

using api::ReplicaType;

std::optional<policy::Slot> TrainingSlot(const api::TFJob& job) {
  for (const ReplicaType type : {ReplicaType::kChief, ReplicaType::kMaster, ReplicaType::kWorker}) {
    if (api::Replicas(job, type) > 0) return policy::Slot{type, 0};
  }
  return std::nullopt;
}

std::optional<policy::Slot> EvaluationSlot(const api::TFJob& job) {
  if (api::Replicas(job, ReplicaType::kEvaluator) == 0) return std::nullopt;
  return policy::Slot{ReplicaType::kEvaluator, 0};
}

}  // namespace tfjob::view
