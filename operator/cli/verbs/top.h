// tfjob top: how far jobs have come.
#pragma once

#include "operator/cli/verbs/job_progress.h"

namespace tfjob::cli {

struct TopOptions {
  Selection selection;
  bool watch = false;  // again and again, until a stop
  Duration interval = 2s;
};

// kFailed when the server could not be asked or a named job does not exist.
int Top(const TopOptions& options, const Surroundings& around, FetchProgress fetch = AskTrainer());

}  // namespace tfjob::cli
