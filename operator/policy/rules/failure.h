// Decides when a replica's failure ends the job.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/event.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

struct PermanentFailure {
  std::string message;  // of the condition and the event
  objects::EventType event_type = objects::EventType::kNormal;

  bool operator==(const PermanentFailure&) const = default;
};

// Returns the failure of the first type, in the order of api::kReplicaTypes, that has a replica
// that failed permanently and is not tolerated (dynamic_worker.h), even while other types restart.
std::optional<PermanentFailure> FindPermanentFailure(const api::TFJob& job,
                                                     const Replicas& replicas);

}  // namespace tfjob::policy
