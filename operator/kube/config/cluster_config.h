// Describes how to reach an API server, and the user to authenticate as, regardless of the source
// of the configuration (kubeconfig.h or in_cluster.h; load.h documents the order in which they are
// tried).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// Contains PEM text or the path of a file with PEM text. Users must read the file again for each
// connection, because Kubernetes may have replaced it.
struct PemSource {
  std::string data;  // takes precedence over path
  std::string path;  // absolute or relative to the working folder

  bool empty() const { return data.empty() && path.empty(); }
  // Returns the text; "" if there is none. Errors name the path.
  StatusOr<std::string> Read() const;
};

struct ClusterConfig {
  // The server's URL, such as "https://host:6443" or, with a path, "https://host/clusters/a". Has
  // no trailing slash, and brackets around an IPv6 address. "http://…" is possible (kubectl proxy,
  // tests).
  std::string server;
  // The trusted authorities, which replace the system's store. If empty, the system's store is
  // trusted.
  PemSource certificate_authority;
  // The name that the server's certificate must have, and that is sent as SNI. "" means the
  // server's host.
  std::string tls_server_name;
  // If true, any certificate is trusted. In this case, `warnings` contains a warning about this.
  bool insecure_skip_tls_verify = false;
  // The proxy's URL, "http://[user:password@]host:port", always with a port; "" to connect
  // directly. HTTPS_PROXY, HTTP_PROXY and NO_PROXY have already been taken into account. For an
  // https server, requests to the proxy use CONNECT.
  std::string proxy_url;

  // The namespace for commands that do not specify one; never empty.
  std::string default_namespace = "default";
  // The headers to send with every request: Impersonate-User, -Uid, -Group, -Extra-….
  std::vector<std::pair<std::string, std::string>> headers;
  // The credentials, never null; NoCredentials() if there are none.
  std::shared_ptr<Credentials> credentials;

  // Where the configuration comes from, for messages to users: `context "kind" of
  // /home/x/.kube/config` or `in-cluster`.
  std::string source;
  // Warnings to log once. Each names the file concerned.
  std::vector<std::string> warnings;
};

}  // namespace tfjob::kube
