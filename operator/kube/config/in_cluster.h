// The configuration of a pod: the service account that Kubernetes mounts into it.
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/kube/config/cluster_config.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"

namespace tfjob::kube {

// The process's environment, or a test's.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

struct InClusterOptions {
  // Holds token, ca.crt and namespace.
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  EnvironmentLookup environment = GetEnv;
  Clock* clock = &RealClock();
};

// Whether this process runs in a pod with a service account: KUBERNETES_SERVICE_HOST and _PORT are
// set and the token file is there.
bool IsInCluster(const InClusterOptions& options = {});

// https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT with ca.crt and the token, which is read
// again as the kubelet renews it (token_file.h); for a host that is an address of IPv6
// kubernetes.default.svc. NotFound outside of a cluster. A token or CA that cannot be read or is none
// is InvalidArgument with its path; an absent namespace is "default".
StatusOr<ClusterConfig> InClusterConfig(const InClusterOptions& options = {});

}  // namespace tfjob::kube
