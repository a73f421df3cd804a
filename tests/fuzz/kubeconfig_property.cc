#include "tests/fuzz/kubeconfig_property.h"

#include <algorithm>

#include "operator/kube/config/kubeconfig.h"
#include "operator/kube/config/proxy.h"
#include "operator/kube/config/url.h"
#include "runtime/base/check.h"

namespace tfjob::fuzz {
namespace {

constexpr char kPath[] = "/folder/fuzz";

void CheckError(const Status& status) {
  if (status.ok()) return;
  ENFORCE(status.code() == StatusCode::kInvalidArgument, "an error must be InvalidArgument");
  ENFORCE(Message(status).find(kPath) != std::string_view::npos, "an error must name the file");
}

// Removes all paths, to ensure that no file is opened.
void DropPaths(kube::Kubeconfig& config) {
  for (auto& [name, cluster] : config.clusters) cluster.certificate_authority.path.clear();
  for (auto& [name, user] : config.users) {
    user.client_certificate.path.clear();
    user.client_key.path.clear();
    user.token_file.clear();
  }
}

void CheckConfig(const kube::ClusterConfig& config) {
  ENFORCE(kube::ParseUrl(config.server).ok(), "the server must be a URL");
  ENFORCE(config.proxy_url.empty() || kube::ParseProxyUrl(config.proxy_url).ok(),
          "the proxy must be a URL");
  ENFORCE(config.credentials != nullptr, "there must be credentials");
  ENFORCE(!config.default_namespace.empty(), "there must be a namespace");
  for (const auto& [name, value] : config.headers) {
    const auto is_bad = [](unsigned char c) { return c < ' ' || c == 0x7f; };
    ENFORCE(std::none_of(name.begin(), name.end(), is_bad), "a header's name must be clean");
    ENFORCE(std::none_of(value.begin(), value.end(), is_bad), "a header must be clean");
  }
}

void CheckText(std::string_view text) {
  const StatusOr<kube::Url> url = kube::ParseUrl(text);
  if (url.ok()) {
    const StatusOr<kube::Url> again = kube::ParseUrl(url->Print());
    ENFORCE(again.ok() && again->Print() == url->Print(), "a printed URL must read as the same");
  }
  (void)kube::NoProxyMatches(text, "host.example.com", 443);
  (void)kube::NoProxyMatches(text, "fd00::1", 443);
  (void)kube::ParseExecCredential(text, "client.authentication.k8s.io/v1");
}

}  // namespace

void CheckKubeconfigProperties(std::string_view text) {
  CheckText(text);
  StatusOr<kube::Kubeconfig> config = kube::ParseKubeconfig(text, kPath);
  CheckError(config.status());
  if (!config.ok()) return;
  DropPaths(*config);
  const kube::Kubeconfig merged = kube::MergeKubeconfigs({*config, *config});
  ENFORCE(merged.current_context == config->current_context &&
              merged.clusters.size() == config->clusters.size() &&
              merged.users.size() == config->users.size() &&
              merged.contexts.size() == config->contexts.size(),
          "merging a file with itself must change nothing");
  kube::ResolveOptions options;
  options.environment = [](const char*) { return std::optional<std::string>(); };
  for (const auto& [name, context] : config->contexts) {
    options.context = name;
    const StatusOr<kube::ClusterConfig> resolved = kube::ResolveKubeconfig(*config, options);
    CheckError(resolved.status());
    if (resolved.ok()) CheckConfig(*resolved);
  }
}

}  // namespace tfjob::fuzz
