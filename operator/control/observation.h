// Defines the values between the steps of a reconcile: Observe → Observation, Decide → Decision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/plan/plan.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"
#include "operator/render/render.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::control {

// One job as one reconcile sees it.
struct Observation {
  std::string key;  // "namespace/name"
  uint64_t id = 0;  // of the reconcile, for logs
  api::TFJob job;   // with defaults
  Status admitted;  // not OK: the job cannot be run (Admission::verdict)
  policy::Snapshot snapshot;
  Time now;
  // A pod may turn out to hang on a node that is gone by then.
  std::optional<Duration> check_nodes_after;
};

// What to do about it.
struct Decision {
  policy::Verdict verdict;
  render::Desired desired;
  plan::Plan plan;
};

}  // namespace tfjob::control
