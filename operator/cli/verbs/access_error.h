// Explains errors from a server to users: names the server and suggests what to change.
#pragma once

#include <string_view>

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// Returns a status with the same code and a message for users. `what` names the object of the call,
// such as "TFJob ns/mnist".
Status Explain(const Status& status, const Cluster& cluster, std::string_view what);

}  // namespace tfjob::cli
