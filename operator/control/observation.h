// Defines the values that the steps of a reconcile pass on: Observe returns an Observation, Decide
// returns a Decision.
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

// A job as one reconcile sees it.
struct Observation {
  std::string key;  // "namespace/name"
  uint64_t id = 0;  // of the reconcile, for logs
  api::TFJob job;   // with defaults
  Status admitted;  // not OK if the job cannot run (Admission::verdict)
  policy::Snapshot snapshot;
  Time now;
  // When to check again whether a terminating pod is stuck on a lost node.
  std::optional<Duration> check_nodes_after;
};

// The actions that a reconcile takes for the job.
struct Decision {
  policy::Verdict verdict;
  render::Desired desired;
  plan::Plan plan;
};

}  // namespace tfjob::control
