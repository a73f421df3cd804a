// Checks that the events of a simulation report each cause only once.
#pragma once

#include <string>

#include "tests/simulation/cluster.h"
#include "tests/simulation/oracle.h"

namespace tfjob::simulation {

// Checks that the number of events about each job's end, exits and suspensions does not exceed the
// number of causes that the oracle has recorded. If `all` is true, no event can have been lost, and
// a job that has ended must have an event about its end. Returns "" or a description of the
// violation.
std::string CheckReports(Cluster& cluster, const Oracle& oracle, bool all);

}  // namespace tfjob::simulation
