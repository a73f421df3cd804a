// tfjob suspend, tfjob resume: set spec.runPolicy.suspend.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

struct SuspendOptions {
  std::vector<std::string> names;
  bool suspend = true;  // false: resume
};

// Suspends or resumes the jobs. A job already in the requested state counts as done. Returns
// kFailed if a job has ended or the server refuses.
int Suspend(const SuspendOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
