#include "operator/cli/connect.h"

#include <utility>

#include "operator/cli/kube_logs.h"
#include "operator/kube/client/kube_client.h"
#include "operator/kube/config/load.h"
#include "runtime/base/log.h"

namespace tfjob::cli {
namespace {

const Logger kLog("cmd");

// The time limit for --request-timeout=0, which means "no limit", as in kubectl. No call takes
// that long.
constexpr Duration kNoLimit = 24h * 365;

class KubeCluster : public Cluster {
 public:
  KubeCluster(const kube::ClusterConfig& config, const ClusterFlags& flags,
              std::unique_ptr<kube::KubeClient> client, std::unique_ptr<kube::RestClient> streams)
      : server_(StrCat(config.server, " (", config.source, ")")),
        name_space_(flags.name_space.empty() ? config.default_namespace : flags.name_space),
        client_(std::move(client)),
        streams_(std::move(streams)),
        logs_(*streams_) {}

  client::Client& client() override { return *client_; }
  LogReader& logs() override { return logs_; }
  std::string server() const override { return server_; }
  std::string name_space() const override { return name_space_; }

 private:
  const std::string server_;
  const std::string name_space_;
  const std::unique_ptr<kube::KubeClient> client_;
  const std::unique_ptr<kube::RestClient> streams_;
  KubeLogs logs_;
};

// If --as is given, replaces the kubeconfig's impersonation settings with --as and --as-group.
void ActAs(const ClusterFlags& flags, kube::ClusterConfig& config) {
  if (flags.as.empty()) return;
  std::erase_if(config.headers,
                [](const auto& header) { return header.first.starts_with("Impersonate-"); });
  config.headers.emplace_back("Impersonate-User", flags.as);
  for (const std::string& group : flags.as_groups) {
    config.headers.emplace_back("Impersonate-Group", group);
  }
}

}  // namespace

StatusOr<std::unique_ptr<Cluster>> ConnectToCluster(const ClusterFlags& flags) {
  if (flags.as.empty() && !flags.as_groups.empty()) {
    return InvalidArgument("--as-group: a group requires a user; give --as too");
  }
  kube::LoadOptions load;
  load.kubeconfig = flags.kubeconfig;
  load.context = flags.context;
  load.order = kube::LoadOrder::kCommandLine;
  ASSIGN_OR_RETURN(kube::ClusterConfig config, kube::LoadClusterConfig(load));
  for (const std::string& warning : config.warnings) kLog.Warning(warning);
  ActAs(flags, config);
  kube::KubeClientOptions options;
  options.transport.user_agent = "tfjob";
  if (flags.request_timeout) {
    options.rest.deadline = *flags.request_timeout == 0s ? kNoLimit : *flags.request_timeout;
  }
  ASSIGN_OR_RETURN(auto client, kube::KubeClient::Create(config, options));
  ASSIGN_OR_RETURN(auto transport, kube::MakeTransport(config, options.transport));
  auto streams =
      std::make_unique<kube::RestClient>(std::move(transport), config.credentials, options.rest);
  return std::make_unique<KubeCluster>(config, flags, std::move(client), std::move(streams));
}

}  // namespace tfjob::cli
