// Finds the configuration of the cluster to talk to.
#pragma once

#include <string>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/in_cluster.h"

namespace tfjob::kube {

enum class LoadOrder {
  // Like controllers: --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config.
  kController,
  // Like kubectl: --kubeconfig, KUBECONFIG, ~/.kube/config, the pod's service account.
  kCommandLine,
};

struct LoadOptions {
  std::string kubeconfig;  // --kubeconfig: only this file; an error if it does not exist
  std::string context;     // --context: instead of current-context; rules out the service account
  LoadOrder order = LoadOrder::kController;
  InClusterOptions in_cluster;  // its environment and clock also apply to kubeconfigs
};

// Returns the first configuration in the order that exists. KUBECONFIG is a colon-separated list of
// files, which are merged; files that do not exist are skipped, and so is a missing ~/.kube/config.
// NotFound, listing all places tried, if there is none. Every other error names the file and the
// path in it.
StatusOr<ClusterConfig> LoadClusterConfig(const LoadOptions& options = {});

}  // namespace tfjob::kube
