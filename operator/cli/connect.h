// A cluster whose API server is asked over the network.
#pragma once

#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// The cluster that flags and kubeconfig name, as kubectl finds it. Nothing is sent yet.
// InvalidArgument, NotFound: flags or kubeconfig are wrong, or there is none. Warnings of the
// kubeconfig are logged.
StatusOr<std::unique_ptr<Cluster>> ConnectToCluster(const ClusterFlags& flags);

}  // namespace tfjob::cli
