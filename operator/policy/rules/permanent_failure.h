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

// Returns true if a permanent failure of a replica of this type does not end the job. This is the
// case for workers if enableDynamicWorker is set. The failed pod is kept for its logs.
bool ToleratesFailure(const api::TFJob& job, api::ReplicaType type);

// Considers only replica types whose failures are not tolerated. Returns the failure of the first
// type, in the order of api::kReplicaTypes, that has a permanently failed replica. Other types that
// are restarting do not matter.
std::optional<PermanentFailure> FindPermanentFailure(const api::TFJob& job,
                                                     const Replicas& replicas);

}  // namespace tfjob::policy
