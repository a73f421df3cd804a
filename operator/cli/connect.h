// Connects to a cluster's API server over the network.
#pragma once

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// Returns the cluster that flags and kubeconfig select, found as kubectl finds it. Sends nothing
// yet. Logs warnings about the kubeconfig. Returns InvalidArgument or NotFound if flags or
// kubeconfig are wrong or there is no kubeconfig.
StatusOr<std::unique_ptr<Cluster>> ConnectToCluster(const ClusterFlags& flags);

}  // namespace tfjob::cli
