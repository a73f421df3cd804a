// Executes one `tfjob run`: starts the cluster, reports what happens, waits for the jobs to end,
// and deletes everything.
#pragma once

#include "runtime/base/status.h"

namespace tfjob {
class StopSource;
}
namespace tfjob::process {
struct RunnerOptions;
}
namespace tfjob::view {
struct Console;
}

namespace tfjob::local {

struct RunOptions;
struct Workload;

// Runs until every job has ended or `stop` is requested. If the output can no longer be written,
// requests a stop itself, with the reason SIGPIPE. Returns whether every job succeeded.
StatusOr<bool> RunWorkload(const RunOptions& options, const Workload& workload,
                           const process::RunnerOptions& process, StopSource& stop,
                           view::Console& console);

}  // namespace tfjob::local
