// One verb about a cluster, as the command line asks for it.
#pragma once

#include <variant>

#include "operator/cmd/verbs/describe.h"
#include "operator/cmd/verbs/get.h"
#include "operator/cmd/verbs/logs.h"
#include "operator/cmd/verbs/restart.h"
#include "operator/cmd/verbs/scale.h"
#include "operator/cmd/verbs/suspend.h"
#include "operator/cmd/verbs/top.h"
#include "operator/cmd/verbs/wait.h"

namespace tfjob::cmd {

using ClusterVerb = std::variant<GetOptions, DescribeOptions, LogsOptions, ScaleOptions,
                                 SuspendOptions, RestartOptions, WaitOptions, TopOptions>;

struct ClusterCommand {
  ClusterFlags cluster;
  ClusterVerb verb;
};

// Connects and carries the verb out. kBadInput when kubeconfig or flags are wrong, else the verb's
// exit code; 128 + the signal when `stop` ended a verb that would have gone on.
int RunCommand(const ClusterCommand& command, const Connect& connect, const StopSource& stop,
               Console& console);

}  // namespace tfjob::cmd
