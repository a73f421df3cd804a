// Decides whether a reconcile ends the job, and by which rule.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/event.h"
#include "operator/policy/facts/replicas.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

struct End {
  api::ConditionType condition = api::ConditionType::kFailed;
  std::string reason;
  std::string message;
  objects::EventType event_type = objects::EventType::kNormal;

  bool operator==(const End&) const = default;
};

// Returns how the job ends; nullopt if it continues. Checks success first, then permanent failures,
// then the backoff limit and the deadline.
std::optional<End> FindEnd(const api::TFJob& job, const api::TFJobStatus& status,
                           const Replicas& replicas, Time now);

}  // namespace tfjob::policy
