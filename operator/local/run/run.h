// tfjob run FILE: the TFJobs of a manifest on this machine, until they end.
#pragma once

#include <string>
#include <vector>

#include "operator/view/console.h"
#include "runtime/base/clock.h"
#include "runtime/base/stop.h"

namespace tfjob::local {

struct RunOptions {
  std::string file;       // "-": standard input
  bool follow = false;    // print the logs of all pods
  bool keep = false;      // leave emptyDirs and claims when the run is over
  std::string state_dir;  // "": a new folder below TMPDIR
  std::string trainer;    // the program that tfjob/trainer stands for; "": found beside this one
  std::vector<std::string> images;  // further "REPOSITORY=PROGRAM"
  Duration crash_backoff = 1s;  // before the second restart of a container; doubles up to 5 minutes
  Duration report_interval = 5s;  // between progress lines where `out` is no terminal
};

// kSucceeded when every job Succeeded, kFailed when one Failed or the run itself could not go on,
// kBadInput when the manifest cannot be run (then nothing was started), 128 + the signal when
// `stop` was requested: the jobs are deleted and their pods end gracefully. When `out` takes nothing
// any more, it is requested here, as SIGPIPE.
int Run(const RunOptions& options, StopSource& stop, view::Console& console);

}  // namespace tfjob::local
