// Decides whether a replica's permanent failure ends the job or, with enableDynamicWorker,
// is tolerated.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/event.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

struct PermanentFailure {
  std::string message;  // for the condition and the event
  objects::EventType event_type = objects::EventType::kNormal;

  bool operator==(const PermanentFailure&) const = default;
};

// Returns true if a permanent failure of the type's replicas does not end the job, which is the
// case for workers if enableDynamicWorker is set. The failed pod is kept for its logs.
bool ToleratesFailure(const api::TFJob& job, api::ReplicaType type);

// Returns the failure of the first type (in the order of api::kReplicaTypes) that has a permanently
// failed replica and whose failures are not tolerated, even if other types are restarting.
std::optional<PermanentFailure> FindPermanentFailure(const api::TFJob& job,
                                                     const Replicas& replicas);

}  // namespace tfjob::policy
