// Reads kubeconfig files as client-go does: parses each file, merges them and resolves the result
// to a ClusterConfig.
// https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
//
// Unknown members are ignored, as in client-go. Every error names the file and the path of the
// member in it; secrets are never shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/exec_plugin.h"
#include "operator/kube/config/in_cluster.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// File paths in the entries are absolute, or relative to the working folder if the kubeconfig's own
// path is relative.
struct KubeconfigCluster {
  std::string where;  // "FILE: clusters[0].cluster"
  std::string server;
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  PemSource certificate_authority;
  std::string proxy_url;
  bool disable_compression = false;
  std::string exec_extension;  // the extension client.authentication.k8s.io/exec as JSON, or ""
};

struct KubeconfigUser {
  std::string where;  // "FILE: users[0].user"
  PemSource client_certificate;
  PemSource client_key;
  std::string token;
  std::string token_file;
  std::string username;
  std::string password;
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;
  std::map<std::string, std::vector<std::string>> as_user_extra;
  std::string auth_provider;  // its name: an error if the user is chosen
  std::optional<ExecConfig> exec;
  Status exec_problem;  // why `exec` cannot be used; reported only if it is needed
};

struct KubeconfigContext {
  std::string where;  // "FILE: contexts[0].context"
  std::string cluster;
  std::string user;
  std::string name_space;
};

struct Kubeconfig {
  std::string current_context;
  std::map<std::string, KubeconfigCluster> clusters;
  std::map<std::string, KubeconfigUser> users;
  std::map<std::string, KubeconfigContext> contexts;
  std::vector<std::string> files;  // the files it was read from
  std::vector<std::string> warnings;
};

// `path` names the file in errors; relative paths start at its folder. An empty text yields an
// empty value. InvalidArgument if the text is not YAML, a type is wrong, two entries have the same
// name, or base64 is malformed.
StatusOr<Kubeconfig> ParseKubeconfig(std::string_view text, const std::string& path);

// For each entry, and for current-context, the first file that has it wins.
Kubeconfig MergeKubeconfigs(std::vector<Kubeconfig> files);

struct ResolveOptions {
  std::string context;  // instead of current-context
  EnvironmentLookup environment = GetEnv;
  Clock* clock = &RealClock();
};

// Resolves the context's cluster, user and namespace. Files that it names are read now, so that a
// missing or broken one is reported at once; exec plugins run later.
StatusOr<ClusterConfig> ResolveKubeconfig(const Kubeconfig& config, const ResolveOptions& options);

}  // namespace tfjob::kube
