// Describes how to reach one API server and as which user, whatever the source (kubeconfig.h,
// in_cluster.h; load.h documents the order in which they are tried).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// PEM text, given inline or as a file. Read a file again for every connection, since Kubernetes
// replaces it in place.
struct PemSource {
  std::string data;  // takes precedence over path
  std::string path;  // absolute, or relative to the working folder

  bool empty() const { return data.empty() && path.empty(); }
  // "" if empty. Errors name the path.
  StatusOr<std::string> Read() const;
};

struct ClusterConfig {
  // "https://host:6443", or with a path: "https://host/clusters/a". No trailing slash; IPv6 hosts
  // in brackets. "http://…" is possible (kubectl proxy, tests).
  std::string server;
  // Trusted instead of the system's store, not in addition to it. Empty: the system's store.
  PemSource certificate_authority;
  // The name that the server's certificate must have, also sent as SNI; "": the server's host.
  std::string tls_server_name;
  // Trust any certificate. `warnings` then says so.
  bool insecure_skip_tls_verify = false;
  // "http://[user:password@]host:port", always with a port; "": connect directly. HTTPS_PROXY,
  // HTTP_PROXY and NO_PROXY are already taken into account. For https, use it with CONNECT.
  std::string proxy_url;
  // Do not ask for compressed answers.
  bool disable_compression = false;

  // The namespace of commands that specify none; never empty.
  std::string default_namespace = "default";
  // Headers of every request: Impersonate-User, -Uid, -Group, -Extra-….
  std::vector<std::pair<std::string, std::string>> headers;
  // Never null: NoCredentials() if there are none.
  std::shared_ptr<Credentials> credentials;

  // For people: "context "kind" of /home/x/.kube/config", "in-cluster".
  std::string source;
  // Lines to log once; each names its file.
  std::vector<std::string> warnings;
};

}  // namespace tfjob::kube
