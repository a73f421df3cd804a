// One job for people: what `tfjob describe` prints.
#pragma once

#include <string>

#include "operator/cmd/verbs/job_facts.h"

namespace tfjob::cmd {

// Pure. At most 100 pods and the last 20 events are shown, with a count of the others.
std::string Describe(const JobFacts& facts);

}  // namespace tfjob::cmd
