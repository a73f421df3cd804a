// Finds the configuration that says which cluster to use.
#pragma once

#include <string>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/in_cluster.h"

namespace tfjob::kube {

enum class LoadOrder {
  // The order for controllers: --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config.
  kController,
  // The order for command lines such as kubectl: --kubeconfig, KUBECONFIG, ~/.kube/config, the
  // pod's service account.
  kCommandLine,
};

struct LoadOptions {
  std::string kubeconfig;  // --kubeconfig: only this file is tried, and it must exist
  std::string context;     // --context: overrides current-context; the service account is not tried
  LoadOrder order = LoadOrder::kController;
  InClusterOptions in_cluster;  // its environment and clock also apply to kubeconfigs
};

// Returns the first configuration that exists, in the given order. KUBECONFIG is a colon-separated
// list of files, which are merged; files that do not exist are skipped. If KUBECONFIG is set,
// ~/.kube/config is not tried; with kController, the service account is not tried either. If there
// is no configuration, returns NotFound with a message that lists the places that were tried. Every
// other error contains the file and the path of the member in it.
StatusOr<ClusterConfig> LoadClusterConfig(const LoadOptions& options = {});

}  // namespace tfjob::kube
