// Describes how to reach an API server, and as which user, regardless of the source of the
// configuration (kubeconfig.h or in_cluster.h; load.h documents the order in which they are tried).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// Holds PEM text, or the path of a file that contains it. Read the file again for every connection,
// because Kubernetes replaces it in place.
struct PemSource {
  std::string data;  // takes precedence over path
  std::string path;  // absolute or relative to the working folder

  bool empty() const { return data.empty() && path.empty(); }
  // Returns the text; "" if there is none. Errors name the path.
  StatusOr<std::string> Read() const;
};

struct ClusterConfig {
  // "https://host:6443", or with a path: "https://host/clusters/a". There is no trailing slash, and
  // IPv6 hosts are in brackets. "http://…" is possible (kubectl proxy, tests).
  std::string server;
  // The authorities to trust. They replace the system's store rather than adding to it. If empty,
  // the system's store is trusted.
  PemSource certificate_authority;
  // The name that the server's certificate must have, which is also sent as SNI. "" means the
  // server's host.
  std::string tls_server_name;
  // If true, any certificate is trusted, and `warnings` says so.
  bool insecure_skip_tls_verify = false;
  // "http://[user:password@]host:port", always with a port; "" to connect directly. HTTPS_PROXY,
  // HTTP_PROXY and NO_PROXY have already been taken into account. For https servers, the proxy is
  // used with CONNECT.
  std::string proxy_url;

  // The namespace for commands that do not specify one; never empty.
  std::string default_namespace = "default";
  // Headers to send with every request: Impersonate-User, -Uid, -Group, -Extra-….
  std::vector<std::pair<std::string, std::string>> headers;
  // Never null; NoCredentials() if there are none.
  std::shared_ptr<Credentials> credentials;

  // Where the configuration comes from, for messages to users: `context "kind" of
  // /home/x/.kube/config` or `in-cluster`.
  std::string source;
  // Lines to log once. Each names the file concerned.
  std::vector<std::string> warnings;
};

}  // namespace tfjob::kube
