// tfjob top: shows the progress of jobs.
#pragma once

#include "operator/cli/verbs/job_progress.h"

namespace tfjob::cli {

struct TopOptions {
  Selection selection;
  bool watch = false;  // repeat until a stop is requested
  Duration interval = 2s;
};

// Prints the jobs. Returns kFailed if the server cannot be queried or a named job does not exist.
// With `watch`, keeps running if a server that has answered before becomes unavailable, and reports
// this once.
int Top(const TopOptions& options, const VerbContext& context, FetchProgress fetch = AskTrainer());

}  // namespace tfjob::cli
