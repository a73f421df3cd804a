#include <utility>

#include "absl/strings/str_join.h"
#include "operator/control/report.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/render/address.h"
#include "operator/service/departure.h"
#include "operator/service/health.h"
#include "operator/service/log.h"
#include "operator/service/operator.h"
#include "runtime/base/version.h"

namespace tfjob::service {
namespace {

// If several pods of a job start within this period, the job's counts are written only once.
constexpr Duration kCountPatience = 250ms;

}  // namespace

Status Operator::Serve() {
  const auto listen = [this](const std::optional<serve::BindAddress>& address, const char* flag,
                             std::map<std::string, serve::Handler> handlers) {
    if (!address) return OkStatus();
    serve::ServerOptions options;
    options.address = *address;
    options.handlers = std::move(handlers);
    auto server = serve::Server::Create(std::move(options));
    if (!server.ok()) return Annotate(server.status(), flag);
    kLog.Info("listening", {{"flag", flag}, {"port", (*server)->port()}});
    if (hooks_.listening) hooks_.listening(flag, (*server)->port());
    servers_.push_back(*std::move(server));
    return OkStatus();
  };
  const serve::Handler text = [this](const std::string&) {
    return serve::Response{200, metrics::Metrics::kContentType, metrics_.Text()};
  };
  RETURN_IF_ERROR(listen(options_.metrics_address, "--metrics-bind-address", {{"/metrics", text}}));
  return listen(
      options_.health_address, "--health-probe-bind-address",
      {{"/healthz", serve::AllPass(HealthChecks())}, {"/readyz", serve::AllPass(ReadyChecks())}});
}

std::vector<serve::Check> Operator::HealthChecks() {
  return {{"ping", [] { return OkStatus(); }},
          {"lease",
           [this] {
             kube::LeaderElection* election = seen_election_;
             return election == nullptr ? OkStatus() : election->Check();
           }},
          {"workers", [this] {
             control::Manager* manager = seen_manager_;
             if (manager == nullptr) return OkStatus();
             return CheckWorkers(manager->CountQueue());
           }}};
}

std::vector<serve::Check> Operator::ReadyChecks() {
  return {{"caches", [this] { return CheckReady(); }}};
}

// A standby counts as ready, because it needs only the lease. Its caches remain empty until it has
// the lease.
Status Operator::CheckReady() {
  control::Manager* manager = seen_manager_;
  if (manager == nullptr) {
    return seen_election_ != nullptr ? OkStatus() : Unavailable("starting");
  }
  const std::vector<std::string> waiting = manager->Waiting();
  return waiting.empty()
             ? OkStatus()
             : Unavailable("waiting for the first list of ", absl::StrJoin(waiting, ", "));
}

Status Operator::Connect(const ConnectOperator& connect) {
  ASSIGN_OR_RETURN(cluster_, connect(options_, metrics_, [this] { return MayWrite(); }));
  seen_cluster_ = cluster_.get();
  kLog.Info("cluster",
            {{"server", cluster_->name()},
             {"namespaces",
              options_.name_spaces.empty() ? "all" : absl::StrJoin(options_.name_spaces, ", ")}});
  return OkStatus();
}

bool Operator::MayWrite() const {
  const kube::LeaderElection* election = seen_election_;
  return election == nullptr || election->leadership().held();
}

Status Operator::StartElection() {
  kube::LeaseOptions options;
  options.name = options_.leader_election_id;
  options.name_space = options_.leader_election_namespace.empty()
                           ? cluster_->own_namespace()
                           : options_.leader_election_namespace;
  options.identity = kube::NewIdentity();
  options.lease_duration = options_.lease_duration;
  options.renew_deadline = options_.renew_deadline;
  options.retry_period = options_.retry_period;
  kube::LeaseCallbacks callbacks;
  callbacks.on_started_leading = [this] { metrics_.SetLeader(options_.leader_election_id, true); };
  callbacks.on_lost = [this](const Status& why) {
    kLog.Error("the lease is lost; writing has stopped", {{"error", why}});
    stop_.Request(kLeaseLost);
  };
  callbacks.on_new_leader = [](const std::string& identity) {
    kLog.Info("leader", {{"identity", identity.empty() ? "none" : identity}});
  };
  callbacks.on_slow_renewal = [this] { metrics_.OnSlowRenewal(options_.leader_election_id); };
  metrics_.SetLeader(options_.leader_election_id, false);
  ASSIGN_OR_RETURN(election_, kube::LeaderElection::Create(cluster_->lease_client(), options,
                                                           std::move(callbacks)));
  seen_election_ = election_.get();
  election_->Start();
  kLog.Info("waiting for the lease", {{"lease", StrCat(options.name_space, "/", options.name)},
                                      {"identity", options.identity}});
  while (!election_->leading() && !stop_.WaitFor(kPoll)) {
  }
  gate_ = std::make_unique<kube::LeaderGate>(cluster_->client(), election_->leadership());
  event_gate_ =
      std::make_unique<kube::LeaderGate>(cluster_->event_client(), election_->leadership());
  return OkStatus();
}

control::ManagerOptions Operator::LoopOptions() {
  control::ManagerOptions options;
  options.name_spaces = options_.name_spaces;
  options.workers = options_.controller_threads;
  options.discovery = &cluster_->discovery();
  options.observer = &metrics_;
  options.settings.address = render::ClusterDns(options_.cluster_domain);
  options.settings.count_patience = kCountPatience;
  options.settings.policy.gang = policy::GangFromFlag(options_.gang_scheduler_name);
  options.settings.policy.gang.enforced = options_.enforce_gang_scheduler;
  options.settings.policy.network_policies = options_.job_network_policies;
  options.settings.admission = {options_.default_clean_pod_policy, options_.max_replicas_per_job};
  options.settings.keys = [this] { return keys_.Ring(); };
  options.settings.is_node_lost = [this](const std::string& node) { return nodes_->IsLost(node); };
  options.settings.record = [this](std::string name, objects::Event event) {
    recorder_->Record(std::move(name), std::move(event));
  };
  return options;
}

Status Operator::StartLoop() {
  keys_.Ring();  // logs the keys at the start
  client::Client& client = gate_ != nullptr ? *gate_ : cluster_->client();
  events::RecorderOptions events;
  events.routine = control::IsRoutine;
  client::Client& event_client = event_gate_ != nullptr ? *event_gate_ : cluster_->event_client();
  recorder_ = std::make_unique<events::Recorder>(event_client, std::move(events));
  nodes_ = std::make_unique<control::Nodes>(client, RealClock());
  metrics_.SetEventSource([this] { return recorder_->counters(); });
  metrics_.SetWorkers(options_.controller_threads);
  ASSIGN_OR_RETURN(manager_, control::Manager::Start(client, LoopOptions()));
  seen_manager_ = manager_.get();
  metrics_.SetSource([this] { return manager_->Count(); });
  return OkStatus();
}

}  // namespace tfjob::service
