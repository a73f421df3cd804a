// How to reach one API server, and as whom: one value, whatever it was read from (kubeconfig.h,
// in_cluster.h; load.h has the order in which they are tried).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// PEM text given by itself or as a file. A file is to be read anew for every connection, since
// Kubernetes replaces it in place.
struct PemSource {
  std::string data;  // wins over path
  std::string path;  // absolute, or relative to the working folder

  bool empty() const { return data.empty() && path.empty(); }
  // "" when empty. Errors name the path.
  StatusOr<std::string> Read() const;
};

struct ClusterConfig {
  // "https://host:6443" or with a path "https://host/clusters/a": no slash at the end, IPv6 hosts in
  // brackets. "http://…" is possible (kubectl proxy, tests).
  std::string server;
  // Trusted instead of the system's store, not beside it. Empty: the system's store.
  PemSource certificate_authority;
  // The name that the server's certificate must have, and SNI; "": the server's host.
  std::string tls_server_name;
  // Trust any certificate. `warnings` says so.
  bool insecure_skip_tls_verify = false;
  // "http://[user:password@]host:port", the port always there; "": connect directly. HTTPS_PROXY,
  // HTTP_PROXY and NO_PROXY are already taken into account. To be used with CONNECT for https.
  std::string proxy_url;
  // Ask for no compressed answers.
  bool disable_compression = false;

  // The namespace of commands that name none; never empty.
  std::string default_namespace = "default";
  // Headers of every request: Impersonate-User, -Uid, -Group, -Extra-….
  std::vector<std::pair<std::string, std::string>> headers;
  // Never null: NoCredentials() when there are none.
  std::shared_ptr<Credentials> credentials;

  // For people: "context "kind" of /home/x/.kube/config", "in-cluster".
  std::string source;
  // Lines to log once, each naming its file.
  std::vector<std::string> warnings;
};

}  // namespace tfjob::kube
