// Reads the configuration of a pod from the service account that Kubernetes mounts into it.
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/kube/config/cluster_config.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"

namespace tfjob::kube {

// The process's environment, or that of a test.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

struct InClusterOptions {
  // Holds token, ca.crt and namespace.
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  EnvironmentLookup environment = GetEnv;
  Clock* clock = &RealClock();
};

// Returns https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT with ca.crt and the
// token, which is read again as the kubelet renews it (token_file.h). If the host is an IPv6
// address, kubernetes.default.svc is used instead. NotFound outside a cluster: a variable or the
// token file is missing.
// InvalidArgument, with the path, if the token or CA cannot be read or is malformed. A
// missing namespace file means "default".
StatusOr<ClusterConfig> InClusterConfig(const InClusterOptions& options = {});

}  // namespace tfjob::kube
