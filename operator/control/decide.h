// Decides about a job: the verdict, the objects it wants, the plan of calls. Pure; policy, render
// and plan decide, this only passes their values on.
#pragma once

#include "operator/policy/facts/options.h"
#include "operator/render/address.h"

namespace tfjob::control {

struct Decision;
struct Observation;

// A job whose objects cannot be built is refused like one that was not admitted.
Decision Decide(const Observation& observation, const policy::Options& options,
                const render::AddressScheme& address);

}  // namespace tfjob::control
