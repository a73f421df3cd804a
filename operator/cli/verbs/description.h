// One job for people: what `tfjob describe` prints.
#pragma once

#include <string>

#include "operator/cli/verbs/job_facts.h"

namespace tfjob::cli {

// Pure. At most 100 pods and the last 20 events are shown, with a count of the others.
std::string Describe(const JobFacts& facts);

}  // namespace tfjob::cli
