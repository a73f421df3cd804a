// Reads a pod's configuration from the service account that Kubernetes mounts into it.
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/kube/config/cluster_config.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"

namespace tfjob::kube {

// Looks up a variable in the process's environment or, in tests, in a simulated one.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

struct InClusterOptions {
  // The folder with the files token, ca.crt and namespace.
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  EnvironmentLookup environment = GetEnv;
  Clock* clock = &RealClock();
};

// Returns a configuration for the server https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT,
// with ca.crt as the authority and with the token. The token is read again regularly, because the
// kubelet renews it (token_file.h). If the host is an IPv6 address, kubernetes.default.svc is used
// instead. If the namespace file is missing or empty, the namespace is "default".
//
// Returns NotFound outside a cluster, that is, if one of the variables or the token file does not
// exist. Returns InvalidArgument, with the path, if the token or the CA cannot be read or is
// malformed.
StatusOr<ClusterConfig> InClusterConfig(const InClusterOptions& options = {});

}  // namespace tfjob::kube
