// tfjob describe: shows jobs with their replicas, pods, conditions and events, and why they wait.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

struct DescribeOptions {
  std::vector<std::string> names;
};

int DescribeJobs(const DescribeOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
