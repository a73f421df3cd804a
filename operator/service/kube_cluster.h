// Connects to the API server named by a kubeconfig or by the pod's service account.
#pragma once

#include "operator/service/cluster.h"

namespace tfjob::service {

StatusOr<std::unique_ptr<OperatorCluster>> ConnectKube(const OperatorOptions& options,
                                                       kube::RestObserver& observer,
                                                       const std::function<bool()>& may_write);

}  // namespace tfjob::service
