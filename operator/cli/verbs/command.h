// One verb about a cluster, as the command line asks for it.
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

// Connects and carries the verb out. kBadInput when kubeconfig or flags are wrong, else the verb's
// exit code; 128 + the signal when `stop` ended a verb that would have gone on.
int RunCommand(const ClusterCommand& command, const Connect& connect, const StopSource& stop,
               view::Console& console);

}  // namespace tfjob::cli
