// The API server that a kubeconfig, or the pod's service account, leads to.
#pragma once

#include "operator/cmd/operator_cluster.h"

namespace tfjob::cmd {

StatusOr<std::unique_ptr<OperatorCluster>> ConnectKube(const OperatorOptions& options,
                                                       kube::RestObserver& observer,
                                                       const std::function<bool()>& may_write);

}  // namespace tfjob::cmd
