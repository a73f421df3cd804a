// Detects pods that cannot terminate because their node is not Ready or is gone.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "operator/policy/facts/decision_options.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// For a pod that is terminating on a lost node, returns the time left until the pod counts as lost
// (options.lost_pod_after past its grace period); zero or less if it already counts as lost.
// Returns nullopt if the pod is not terminating, or if its node is not known to be
// lost.
std::optional<Duration> TimeToLost(const objects::Pod& pod,
                                   const std::optional<std::set<std::string>>& lost_nodes, Time now,
                                   const DecisionOptions& options);

// Returns true if the job's annotation requests that lost pods be deleted with grace period 0.
bool ForcesDeletion(const api::TFJob& job);

}  // namespace tfjob::policy
