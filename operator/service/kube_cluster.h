// Connects to the API server that a kubeconfig or the pod's service account specifies.
#pragma once

#include "operator/service/cluster.h"

namespace tfjob::service {

StatusOr<std::unique_ptr<OperatorCluster>> ConnectKube(const OperatorOptions& options,
                                                       kube::RestObserver& observer,
                                                       const std::function<bool()>& may_write);

}  // namespace tfjob::service
