// What went wrong between a verb and a server, with the server's name and what to change.
#pragma once

#include <string_view>

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// The same code, with a message for people. `what` is what the call was about: "TFJob ns/mnist".
Status Explain(const Status& status, const Cluster& cluster, std::string_view what);

}  // namespace tfjob::cli
