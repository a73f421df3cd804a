// Why a job does not run, in one sentence.
#pragma once

#include <string>

#include "operator/cli/verbs/job_facts.h"

namespace tfjob::cli {

// "" for a job that has ended, and for one of which nothing is amiss. Of several reasons the one
// that must go first: what keeps the operator from the job before what keeps pods from nodes before
// what keeps containers from running. Pure.
std::string WhyItWaits(const JobFacts& facts);

}  // namespace tfjob::cli
