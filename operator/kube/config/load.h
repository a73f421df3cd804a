// Finds the configuration of the cluster to talk to.
#pragma once

#include <string>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/in_cluster.h"

namespace tfjob::kube {

enum class LoadOrder {
  // As controllers do: --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config.
  kController,
  // As kubectl does: --kubeconfig, KUBECONFIG, ~/.kube/config, the pod's service account.
  kCommandLine,
};

struct LoadOptions {
  std::string kubeconfig;  // --kubeconfig: this file alone; an absent one is an error
  std::string context;     // --context: instead of current-context; excludes the service account
  LoadOrder order = LoadOrder::kController;
  InClusterOptions in_cluster;  // its environment and clock are used for kubeconfigs too
};

// The first of the order that is there. KUBECONFIG is a list of files separated by colons that are
// merged, of which absent ones are passed over; the same holds for ~/.kube/config. NotFound, with
// all the places, when there is none. Every other error names the file and the path in it.
StatusOr<ClusterConfig> LoadClusterConfig(const LoadOptions& options = {});

}  // namespace tfjob::kube
