#include "operator/service/kube_cluster.h"

#include <algorithm>
#include <utility>

#include "operator/control/cache/pack_job.h"
#include "operator/kube/client/kube_client.h"
#include "operator/kube/config/load.h"
#include "operator/service/log.h"
#include "runtime/base/version.h"

namespace tfjob::service {
namespace {

// The limits for events: one sixth of --kube-api-qps and --kube-api-burst (50 per second by
// default), in addition to the calls that these flags allow. This is enough for 1,000 jobs that are
// created at the same time: by the time their pods have been created, the events that users need
// are written, because operator/events queues them separately.
constexpr int kEventPart = 6;
constexpr int kEventConnections = 2;

class KubeCluster : public OperatorCluster {
 public:
  KubeCluster(kube::ClusterConfig config, std::unique_ptr<kube::KubeClient> client,
              std::unique_ptr<kube::KubeClient> event_client,
              std::unique_ptr<kube::KubeClient> lease_client)
      : config_(std::move(config)),
        client_(std::move(client)),
        event_client_(std::move(event_client)),
        lease_client_(std::move(lease_client)) {}

  std::string name() const override { return StrCat(config_.server, " (", config_.source, ")"); }
  std::string own_namespace() const override { return config_.default_namespace; }
  client::Client& client() override { return *client_; }
  client::Client& event_client() override { return *event_client_; }
  client::Client& lease_client() override { return *lease_client_; }
  client::Discovery& discovery() override { return *client_; }
  std::vector<kube::WatchTrouble> Troubles() override { return client_->Troubles(); }
  void CancelCalls() override {
    client_->Stop();
    event_client_->Stop();
  }
  void CancelLeaseCalls() override { lease_client_->Stop(); }

 private:
  const kube::ClusterConfig config_;
  const std::unique_ptr<kube::KubeClient> client_;
  const std::unique_ptr<kube::KubeClient> event_client_;
  const std::unique_ptr<kube::KubeClient> lease_client_;
};

// Returns the limits of the event client. No limit is reduced below 1.
kube::RestOptions EventLimits(kube::RestOptions rest) {
  if (rest.qps > 0) rest.qps = std::max(1.0, rest.qps / kEventPart);
  rest.burst = std::max(1, rest.burst / kEventPart);
  rest.max_in_flight = kEventConnections;
  return rest;
}

}  // namespace

StatusOr<std::unique_ptr<OperatorCluster>> ConnectKube(const OperatorOptions& options,
                                                       kube::RestObserver& observer,
                                                       const std::function<bool()>& may_write) {
  kube::LoadOptions load;
  load.kubeconfig = options.kubeconfig;
  ASSIGN_OR_RETURN(kube::ClusterConfig config, kube::LoadClusterConfig(load));
  for (const std::string& warning : config.warnings) kLog.Warning(warning);

  kube::KubeClientOptions kube;
  kube.rest.qps = options.kube_api_qps;
  kube.rest.burst = options.kube_api_burst;
  kube.rest.observer = &observer;
  kube.rest.may_write = may_write;
  kube.transport.user_agent = StrCat("tfjob-operator/", kVersion);
  kube.watch.pack = control::PackIfJob;
  ASSIGN_OR_RETURN(auto client, kube::KubeClient::Create(config, kube));
  kube::KubeClientOptions events = kube;
  events.rest = EventLimits(kube.rest);
  ASSIGN_OR_RETURN(auto event_client, kube::KubeClient::Create(config, events));
  // Set no limit, because calls that renew the lease must never wait for other calls.
  kube.rest.qps = 0;
  kube.rest.may_write = nullptr;
  kube.rest.deadline = std::min(Duration(5s), options.renew_deadline / 2);
  ASSIGN_OR_RETURN(auto lease_client, kube::KubeClient::Create(config, kube));
  return std::unique_ptr<OperatorCluster>(std::make_unique<KubeCluster>(
      std::move(config), std::move(client), std::move(event_client), std::move(lease_client)));
}

}  // namespace tfjob::service
