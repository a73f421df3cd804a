// tfjob suspend, tfjob resume: spec.runPolicy.suspend.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

struct SuspendOptions {
  std::vector<std::string> names;
  bool suspend = true;  // false: resume
};

// A job that is as it is wished counts as done. kFailed when a job has ended or the server refuses.
int Suspend(const SuspendOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
