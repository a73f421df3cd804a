// Reads kubeconfig files as client-go does: parses each file, merges them, and resolves the result
// to a ClusterConfig.
// https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
//
// As in client-go, unknown members are ignored. Every error contains the file and the path of the
// member in it, but never a secret.
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

// A `cluster` entry. File paths in entries are absolute or, if the kubeconfig's own path is
// relative, relative to the working folder.
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
  std::string auth_provider;  // its name; not supported, so choosing this user is an error
  std::optional<ExecConfig> exec;
  Status exec_problem;  // why `exec` cannot be used; reported only if `exec` is needed
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
  std::vector<std::string> files;  // the files from which this was read
  std::vector<std::string> warnings;
};

// Parses the text of a kubeconfig. `path` names the file in errors, and relative paths in the text
// are relative to its folder. Empty text yields an empty Kubeconfig. Returns InvalidArgument if the
// text is not YAML or not of kind Config and version v1, or if it contains a member of the wrong
// type, two entries with the same name, or malformed base64.
StatusOr<Kubeconfig> ParseKubeconfig(std::string_view text, const std::string& path);

// Merges kubeconfigs. Takes each entry, and current-context, from the first file that contains it.
Kubeconfig MergeKubeconfigs(std::vector<Kubeconfig> files);

struct ResolveOptions {
  std::string context;  // if not "", used instead of current-context
  EnvironmentLookup environment = GetEnv;
  Clock* clock = &RealClock();
};

// Resolves the context's cluster, user and namespace. Immediately reads the files that they refer
// to, so that a missing or malformed file is reported now. Exec plugins run later.
StatusOr<ClusterConfig> ResolveKubeconfig(const Kubeconfig& config, const ResolveOptions& options);

}  // namespace tfjob::kube
