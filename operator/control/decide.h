// Makes the decision for a job: the verdict, the objects to create, and the plan of calls. Only
// combines the packages policy, render and plan. Pure.
#pragma once

#include "operator/policy/facts/decision_options.h"
#include "operator/render/address.h"

namespace tfjob::control {

struct Decision;
struct Observation;

// Returns the decision. If the job was not admitted, or if its objects cannot be rendered, the
// decision is to refuse it (policy::Refuse).
Decision Decide(const Observation& observation, const policy::DecisionOptions& options,
                const render::AddressScheme& address);

}  // namespace tfjob::control
