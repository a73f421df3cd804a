// Explains in one sentence why a job does not run.
#pragma once

#include <string>

#include "operator/cli/verbs/job_facts.h"

namespace tfjob::cli {

// Returns why the job waits; "" if it has ended or nothing is wrong. If there are several reasons,
// returns the one to resolve first: obstacles of the operator before obstacles of scheduling before
// obstacles of containers. Pure.
std::string WhyItWaits(const JobFacts& facts);

}  // namespace tfjob::cli
