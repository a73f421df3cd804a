#include "operator/service/run.h"

#include <atomic>
#include <thread>
#include <utility>

#include "operator/control/manager.h"
#include "operator/control/nodes.h"
#include "operator/control/report.h"
#include "operator/events/recorder.h"
#include "operator/kube/leader/leader_gate.h"
#include "operator/kube/leader/lease.h"
#include "operator/metrics/metrics.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/serve/checks.h"
#include "operator/serve/server.h"
#include "operator/service/log.h"
#include "runtime/base/thread_pool.h"
#include "runtime/base/version.h"

namespace tfjob::service {
namespace {

// Passed to StopSource::Request; signals are positive.
constexpr int kLeaseLost = -1;
constexpr int kGivenUp = -2;
constexpr int kMisconfigured = -3;
// How often a standby checks whether it leads, and a starting operator whether the lists
// have arrived.
constexpr Duration kPoll = 50ms;
constexpr Duration kLook = 1s;
// How often a waiting operator logs what it waits for, and a working one checks its watches.
constexpr Duration kComplaint = 10s;
// A leader that sees nothing for this long exits, so that another operator may try.
// controller-runtime waits for its caches just as long.
constexpr Duration kBlind = 2min;
// Calls that hang are cancelled this long after the stop request. Calls for the lease, which is
// released last, get more time.
constexpr Duration kCallsMayTake = 1s;
constexpr Duration kLeaseMayTake = 1500ms;
// Pods of a job that start within this period cause a single write of its counts.
constexpr Duration kCountPatience = 250ms;
constexpr Duration kEventsMayTake = 300ms;
// A worker that is busy for this long is stuck: neither one call nor the many calls of one
// reconcile take that long.
constexpr Duration kStuck = 15min;

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// Returns the exit code of the process for the stop request that ended it.
int CodeOf(int signal) {
  if (signal == kMisconfigured) return view::kBadInput;
  return signal > 0 ? view::kSucceeded : view::kFailed;
}

// Runs the operator once. Stop() must be called after `stop` was requested.
class Operator {
 public:
  Operator(const OperatorOptions& options, StopSource& stop, const OperatorHooks& hooks)
      : options_(options), stop_(stop), hooks_(hooks), metrics_(kVersion), departure_([this] {
          Depart();
        }) {}

  Status Serve();
  Status Connect(const ConnectOperator& connect);
  // Waits for leadership, then runs the control loop until a stop is requested.
  Status Run();
  void Stop();

 private:
  // Runs on departure_: waits for the stop request and cancels calls that delay the shutdown.
  void Depart();
  Status StartElection();
  Status StartLoop();
  control::Options LoopOptions();
  Status AwaitLists();
  // Runs until a stop is requested. Returns an error if this leader has seen nothing for too long.
  Status WatchTheWatches();
  // Returns the broken watches that the control loop cannot work without.
  std::vector<kube::WatchTrouble> Troubles();
  // The reason why a watch delivers nothing.
  struct Obstacle {
    std::string text;
    bool of_everyone = false;  // another operator would have it too
    std::string what;          // "Pod team-a/*"
    Duration lasting{0};
  };
  Obstacle Explain(const kube::WatchTrouble& trouble);
  // Explains the first trouble that another operator would not have, or else the first.
  Obstacle Explain(const std::vector<kube::WatchTrouble>& troubles);
  std::vector<serve::Check> HealthChecks();
  std::vector<serve::Check> ReadyChecks();
  Status CheckReady();
  // Called for calls that had to wait, after the gate has let them through.
  bool MayWrite() const;

  const OperatorOptions& options_;
  StopSource& stop_;
  const OperatorHooks& hooks_;
  metrics::Metrics metrics_;
  std::vector<std::unique_ptr<serve::Server>> servers_;
  std::unique_ptr<OperatorCluster> cluster_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::unique_ptr<kube::LeaderGate> gate_;
  std::unique_ptr<kube::LeaderGate> event_gate_;
  std::unique_ptr<events::Recorder> recorder_;
  std::unique_ptr<control::Nodes> nodes_;
  std::unique_ptr<control::Manager> manager_;
  // Read by the servers' thread.
  std::atomic<kube::LeaderElection*> seen_election_ = nullptr;
  std::atomic<control::Manager*> seen_manager_ = nullptr;
  std::atomic<OperatorCluster*> seen_cluster_ = nullptr;  // read by departure_
  StopSource ended_;                                      // everything but departure_ has ended
  std::thread departure_;
};

Status Operator::Serve() {
  const auto listen = [this](const std::optional<serve::BindAddress>& address, const char* flag,
                             std::map<std::string, serve::Handler> handlers) {
    if (!address) return OkStatus();
    serve::Options options;
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
             const Duration longest = manager->CountQueue().longest;
             if (longest < kStuck) return OkStatus();
             return DeadlineExceeded("a worker has been reconciling one job for ",
                                     FormatDuration(longest));
           }}};
}

std::vector<serve::Check> Operator::ReadyChecks() {
  return {{"caches", [this] { return CheckReady(); }}};
}

// A standby counts as ready, since it can take over within moments.
Status Operator::CheckReady() {
  control::Manager* manager = seen_manager_;
  if (manager == nullptr) {
    return seen_election_ != nullptr ? OkStatus() : Unavailable("starting");
  }
  const std::vector<std::string> waiting = manager->Waiting();
  return waiting.empty() ? OkStatus()
                         : Unavailable("waiting for the first list of ", Join(waiting));
}

Status Operator::Connect(const ConnectOperator& connect) {
  ASSIGN_OR_RETURN(cluster_, connect(options_, metrics_, [this] { return MayWrite(); }));
  seen_cluster_ = cluster_.get();
  kLog.Info("cluster",
            {{"server", cluster_->name()},
             {"namespaces", options_.name_spaces.empty() ? "all" : Join(options_.name_spaces)}});
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

control::Options Operator::LoopOptions() {
  control::Options options;
  options.name_spaces = options_.name_spaces;
  options.workers = options_.controller_threads;
  options.discovery = &cluster_->discovery();
  options.observer = &metrics_;
  options.settings.address = render::ClusterDns(options_.cluster_domain);
  options.settings.count_patience = kCountPatience;
  options.settings.policy.gang = policy::GangFromFlag(options_.gang_scheduler_name);
  options.settings.default_clean_pod_policy = options_.default_clean_pod_policy;
  options.settings.is_node_lost = [this](const std::string& node) { return nodes_->IsLost(node); };
  options.settings.record = [this](std::string name, objects::Event event) {
    recorder_->Record(std::move(name), std::move(event));
  };
  return options;
}

Status Operator::StartLoop() {
  client::Client& client = gate_ != nullptr ? *gate_ : cluster_->client();
  events::Options events;
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

std::vector<kube::WatchTrouble> Operator::Troubles() {
  const policy::GangScheduler gang = policy::GangFromFlag(options_.gang_scheduler_name).scheduler;
  std::vector<kube::WatchTrouble> troubles = cluster_->Troubles();
  std::erase_if(troubles, [gang](const kube::WatchTrouble& trouble) {
    switch (trouble.kind) {
      case client::Kind::kTFJob:
      case client::Kind::kPod:
      case client::Kind::kService:
        return false;
      case client::Kind::kWorkload:
        return gang != policy::GangScheduler::kNative;
      default:  // one job's annotation must not end the operator for all jobs
        return gang == policy::GangScheduler::kNone ||
               trouble.kind != policy::TraitsOf(gang).pod_group_kind;
    }
  });
  return troubles;
}

Operator::Obstacle Operator::Explain(const kube::WatchTrouble& trouble) {
  Obstacle obstacle{trouble.why.ToString(), false,
                    client::ToString({trouble.kind, trouble.name_space, "*"}), trouble.lasting};
  // Permissions belong to the service account, which all operators of a Deployment share.
  obstacle.of_everyone = trouble.why.code() == StatusCode::kResourceExhausted ||
                         trouble.why.code() == StatusCode::kPermissionDenied;
  if (obstacle.of_everyone) return obstacle;
  const Status served = cluster_->discovery().ApiVersion(trouble.kind).status();
  if (served.code() != StatusCode::kNotFound) return obstacle;
  obstacle.of_everyone = true;
  obstacle.text =
      trouble.kind == client::Kind::kTFJob
          ? "the CRD tfjobs.kubeflow.org is not installed: kubectl apply --server-side -f crds/"
          : std::string(Message(served));
  return obstacle;
}

Operator::Obstacle Operator::Explain(const std::vector<kube::WatchTrouble>& troubles) {
  if (troubles.empty()) {
    const Status served = cluster_->discovery().ApiVersion(client::Kind::kTFJob).status();
    return {served.ok() ? "the server is slow" : served.ToString(), false, "", Duration{0}};
  }
  std::optional<Obstacle> first;
  for (const kube::WatchTrouble& trouble : troubles) {
    Obstacle obstacle = Explain(trouble);
    if (!obstacle.of_everyone) return obstacle;
    if (!first) first = std::move(obstacle);
  }
  return *std::move(first);
}

Status Operator::AwaitLists() {
  Duration complained = hooks_.clock->Monotonic();
  while (!manager_->Synced() && !stop_.WaitFor(kPoll)) {
    const Duration now = hooks_.clock->Monotonic();
    if (now - complained < kComplaint) continue;
    complained = now;
    const std::string missing = StrCat("the first list of ", Join(manager_->Waiting()));
    const Obstacle obstacle = Explain(Troubles());
    kLog.Warning("waiting", {{"for", missing}, {"because", obstacle.text}});
    if (election_ != nullptr && obstacle.lasting >= kBlind && !obstacle.of_everyone) {
      return Unavailable("this leader has waited for ", missing, " for ",
                         FormatDuration(obstacle.lasting), ": ", obstacle.text,
                         "; it leaves the lease to another");
    }
  }
  if (stop_.requested()) return OkStatus();
  const control::Cache::Numbers held = manager_->Count().cache;
  int64_t jobs = 0;
  for (const auto& [state, count] : held.jobs) jobs += count;
  kLog.Info("ready", {{"jobs", jobs}, {"pods", held.pods}, {"services", held.services}});
  return OkStatus();
}

Status Operator::WatchTheWatches() {
  Duration looked = hooks_.clock->Monotonic();
  while (!stop_.WaitFor(kLook)) {
    const Duration now = hooks_.clock->Monotonic();
    if (now - looked < kComplaint) continue;
    looked = now;
    std::vector<kube::WatchTrouble> troubles = Troubles();
    std::erase_if(troubles, [](const auto& trouble) { return trouble.lasting < kBlind; });
    if (troubles.empty()) continue;
    const Obstacle obstacle = Explain(troubles);
    const std::string lasting = FormatDuration(obstacle.lasting);
    kLog.Warning("no changes seen",
                 {{"for", lasting}, {"watch", obstacle.what}, {"because", obstacle.text}});
    if (election_ == nullptr || obstacle.of_everyone) continue;
    return Unavailable("this leader has seen no change of ", obstacle.what, " for ", lasting, ": ",
                       obstacle.text, "; it leaves the lease to another");
  }
  return OkStatus();
}

Status Operator::Run() {
  if (stop_.requested()) return OkStatus();
  if (options_.leader_elect) RETURN_IF_ERROR(StartElection());
  if (stop_.requested()) return OkStatus();
  RETURN_IF_ERROR(StartLoop());
  RETURN_IF_ERROR(AwaitLists());
  return WatchTheWatches();
}

void Operator::Depart() {
  SetThreadName("departure");
  while (!stop_.WaitFor(1h)) {
  }
  const bool lost = stop_.signal() == kLeaseLost;
  if (hooks_.leaving) hooks_.leaving(CodeOf(stop_.signal()));
  if (!lost && ended_.WaitFor(kCallsMayTake)) return;
  OperatorCluster* cluster = seen_cluster_;
  if (cluster == nullptr) return;
  cluster->CancelCalls();
  if (!lost && ended_.WaitFor(kLeaseMayTake - kCallsMayTake)) return;
  cluster->CancelLeaseCalls();
}

void Operator::Stop() {
  const bool lost = stop_.signal() == kLeaseLost;
  metrics_.SetSource(nullptr);
  if (manager_ != nullptr) manager_->Stop();
  if (recorder_ != nullptr) recorder_->Stop(lost ? Duration(0) : kEventsMayTake);
  if (election_ != nullptr) election_->Stop();
  metrics_.SetLeader(options_.leader_election_id, false);
  ended_.Request(1);
  departure_.join();
  servers_.clear();
}

}  // namespace

int RunOperator(const OperatorOptions& options, const ConnectOperator& connect, StopSource& stop,
                const OperatorHooks& hooks) {
  for (const std::string& warning : options.warnings) kLog.Warning(warning);
  kLog.Info("starting tfjob-operator", {{"version", kVersion}});
  Operator one(options, stop, hooks);
  int reason = kGivenUp;
  Status status = one.Serve();
  if (status.ok()) {
    reason = kMisconfigured;
    status = one.Connect(connect);
  }
  if (status.ok()) {
    reason = kGivenUp;
    status = one.Run();
  }
  if (status.ok() || stop.requested()) {
    kLog.Info("stopping", {{"signal", stop.signal()}});
  } else {
    kLog.Error("the operator cannot run", {{"error", status}});
    stop.Request(reason);
  }
  const int code = CodeOf(stop.signal());
  one.Stop();
  kLog.Info("stopped", {{"code", code}});
  return code;
}

}  // namespace tfjob::service
