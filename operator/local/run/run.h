// tfjob run FILE: runs the TFJobs of a manifest on this machine until they end.
#pragma once

#include <string>
#include <vector>

#include "operator/view/console.h"
#include "runtime/base/clock.h"
#include "runtime/base/stop.h"

namespace tfjob::local {

struct RunOptions {
  std::string file;       // "-" for standard input
  bool follow = false;    // print the logs of all pods
  bool keep = false;      // keep emptyDirs after the run
  std::string state_dir;  // "" for a new folder under TMPDIR
  // The folder for the volumes of claims, which are always kept. If "", it is
  // $XDG_DATA_HOME/tfjob/claims, with ~/.local/share in place of $XDG_DATA_HOME if that is not set.
  std::string claims_dir;
  std::string trainer;              // the program for the image tfjob/trainer; "" to search for it
  std::vector<std::string> images;  // more images, as "REPOSITORY=PROGRAM"
  Duration crash_backoff = 1s;  // before the second restart of a container; doubles up to 5 minutes
  Duration report_interval = 5s;  // between progress lines if `out` is not a terminal
};

// Runs the jobs and returns the exit code:
//   kSucceeded      every job Succeeded
//   kFailed         a job Failed, or the run itself could not continue
//   kBadInput       the manifest cannot be run, or another run is using the state folder; nothing
//                   was started
//   128 + signal    `stop` was requested; the jobs are deleted and their pods terminate gracefully
// Requests `stop` itself, with the reason SIGPIPE, if `out` can no longer be written.
int Run(const RunOptions& options, StopSource& stop, view::Console& console);

}  // namespace tfjob::local
