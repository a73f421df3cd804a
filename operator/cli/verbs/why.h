// Explains in one sentence why a job does not run.
#pragma once

#include <string>

#include "operator/cli/verbs/job_facts.h"

namespace tfjob::cli {

// Returns why the job waits; "" if it has ended or nothing is wrong. If there are several reasons,
// returns the one to resolve first: problems of the operator precede problems of scheduling, which
// precede problems of containers. Pure.
std::string WhyItWaits(const JobFacts& facts);

}  // namespace tfjob::cli
