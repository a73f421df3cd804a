// Decides when a replica's failure ends the job, and which failures enableDynamicWorker tolerates.
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

// True if a replica of the type may fail permanently without ending the job: workers under
// enableDynamicWorker. The pod stays, with its logs.
bool ToleratesFailure(const api::TFJob& job, api::ReplicaType type);

// Returns the failure of the first type, in the order of api::kReplicaTypes, that has a replica
// that failed permanently and is not tolerated, even while other types restart.
std::optional<PermanentFailure> FindPermanentFailure(const api::TFJob& job,
                                                     const Replicas& replicas);

}  // namespace tfjob::policy
