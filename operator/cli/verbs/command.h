// One cluster verb with its options, as parsed from the command line.
#pragma once

#include <variant>

#include "operator/cli/verbs/describe.h"
#include "operator/cli/verbs/get.h"
#include "operator/cli/verbs/logs.h"
#include "operator/cli/verbs/restart.h"
#include "operator/cli/verbs/scale.h"
#include "operator/cli/verbs/suspend.h"
#include "operator/cli/verbs/top.h"
#include "operator/cli/verbs/wait.h"

namespace tfjob::cli {

using ClusterVerb = std::variant<GetOptions, DescribeOptions, LogsOptions, ScaleOptions,
                                 SuspendOptions, RestartOptions, WaitOptions, TopOptions>;

struct ClusterCommand {
  ClusterFlags cluster;
  ClusterVerb verb;
};

// Connects and runs the verb. Returns kBadInput if kubeconfig or flags are wrong, 128 + the signal
// if `stop` ended a verb that would have continued, otherwise the verb's exit code.
int RunCommand(const ClusterCommand& command, const Connect& connect, const StopSource& stop,
               view::Console& console);

}  // namespace tfjob::cli
