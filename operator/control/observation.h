// Defines the values that one step of a reconcile passes to the next: Observe returns an
// Observation, and Decide returns a Decision.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/plan/plan.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"
#include "operator/render/render.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::keys {
class KeyRing;
}

namespace tfjob::control {

// Describes a job as one reconcile sees it.
struct Observation {
  std::string key;  // "namespace/name"
  uint64_t id = 0;  // identifies the reconcile in logs
  api::TFJob job;   // with defaults
  Status admitted;  // not OK if the job cannot run (Admission::verdict)
  policy::Snapshot snapshot;
  std::shared_ptr<const keys::KeyRing> keys;  // the operator's key ring; nullptr if it has none
  Time now;
  // How long to wait before checking again whether a terminating pod is stuck on a lost node.
  std::optional<Duration> check_nodes_after;
  // True if some of the operator's own writes could not be read and must be read later.
  bool has_unconfirmed_writes = false;
};

// Contains the decision of a reconcile: the verdict, the objects to create, and the plan of calls.
struct Decision {
  policy::Verdict verdict;
  render::Desired desired;
  plan::Plan plan;
};

}  // namespace tfjob::control
