// Connects to a cluster's API server over the network.
#pragma once

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// Returns the cluster that the flags and the kubeconfig select. Looks for the kubeconfig in the
// same places as kubectl, logs warnings about it, and does not contact the server yet. Returns
// InvalidArgument or NotFound if the flags or the kubeconfig are wrong or there is no kubeconfig.
StatusOr<std::unique_ptr<Cluster>> ConnectToCluster(const ClusterFlags& flags);

}  // namespace tfjob::cli
