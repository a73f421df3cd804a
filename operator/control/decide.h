// Makes the decision for a job: the verdict, the objects to create, and the plan of calls. Combines
// the packages policy, render and plan, and adds no rules. Pure.
#pragma once

#include "operator/policy/facts/decision_options.h"
#include "operator/render/address.h"

namespace tfjob::control {

struct Decision;
struct Observation;

// Returns the decision. If the job was not admitted or its objects cannot be rendered, the decision
// is to refuse the job (policy::Refuse).
Decision Decide(const Observation& observation, const policy::DecisionOptions& options,
                const render::AddressScheme& address);

}  // namespace tfjob::control
