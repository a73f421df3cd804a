// Explains errors of calls to a server, naming the server and what the user can change.
#pragma once

#include <string_view>

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// Returns a status with the same code and a message for users. `what` names the object of the call,
// such as "TFJob ns/mnist".
Status Explain(const Status& status, const Cluster& cluster, std::string_view what);

}  // namespace tfjob::cli
