// Formats one job as `tfjob describe` prints it.
#pragma once

#include <string>

#include "operator/cli/verbs/job_facts.h"

namespace tfjob::cli {

// Describes a job. Shows at most 100 pods and the last 20 events, and says how many pods and events
// it omits. Pure.
std::string Describe(const JobFacts& facts);

}  // namespace tfjob::cli
