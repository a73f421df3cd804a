// Makes the decision for a job: the verdict, the objects to create, and the plan of calls. Only
// combines the packages policy, render and plan. Pure.
#pragma once

#include "operator/policy/facts/decision_options.h"
#include "operator/render/address.h"

namespace tfjob::control {

struct Decision;
struct Observation;

// Refuses a job that was not admitted or whose objects cannot be rendered.
Decision Decide(const Observation& observation, const policy::DecisionOptions& options,
                const render::AddressScheme& address);

}  // namespace tfjob::control
