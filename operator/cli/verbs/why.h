// Explains in one sentence why a job is not running.
#pragma once

#include <string>

#include "operator/cli/verbs/job_facts.h"

namespace tfjob::cli {

// Returns the reason why the job is waiting; "" if nothing is wrong or if the job has ended and is
// not being deleted. If there are several reasons, returns the one to resolve first. They are
// checked in this order: reasons that concern the whole job, objects that the server refused to
// create, pods without a node, waiting containers, missing pods. Pure.
std::string WhyItWaits(const JobFacts& facts);

}  // namespace tfjob::cli
