#include "operator/service/run.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/service/departure.h"
#include "operator/service/log.h"
#include "operator/service/operator.h"
#include "runtime/base/thread_pool.h"
#include "runtime/base/version.h"

namespace tfjob::service {
namespace {

// How often a running operator checks whether to stop.
constexpr Duration kStopPoll = 1s;
// How often a waiting operator logs what it is waiting for, and how often a running operator checks
// its watches.
constexpr Duration kReportInterval = 10s;

}  // namespace

Operator::Operator(const OperatorOptions& options, StopSource& stop, const OperatorHooks& hooks)
    : options_(options),
      stop_(stop),
      hooks_(hooks),
      metrics_(kVersion),
      keys_(options.job_keys_dir, *hooks.clock),
      departure_([this] { Depart(); }) {}

std::vector<kube::WatchTrouble> Operator::Troubles() {
  return RequiredWatches(cluster_->Troubles(),
                         policy::GangFromFlag(options_.gang_scheduler_name).scheduler,
                         options_.job_network_policies);
}

CheckServed Operator::ServedCheck() {
  return [this](objects::Kind kind) { return cluster_->discovery().ApiVersion(kind).status(); };
}

Status Operator::AwaitLists() {
  Duration reported = hooks_.clock->Monotonic();
  while (!manager_->Synced() && !stop_.WaitFor(kPoll)) {
    const Duration now = hooks_.clock->Monotonic();
    if (now - reported < kReportInterval) continue;
    reported = now;
    const std::string missing =
        StrCat("the first list of ", absl::StrJoin(manager_->Waiting(), ", "));
    const StaleWatches stale = JudgeMissingLists(Troubles(), missing, leads(), ServedCheck());
    kLog.Warning("waiting", {{"for", missing}, {"because", stale.because}});
    if (stale.action == StaleAction::kLeave) return Unavailable(stale.leaving);
  }
  if (stop_.requested()) return OkStatus();
  const control::CacheNumbers held = manager_->Count().cache;
  int64_t jobs = 0;
  for (const auto& [state, count] : held.jobs) jobs += count;
  kLog.Info("ready", {{"jobs", jobs}, {"pods", held.pods}, {"services", held.services}});
  return OkStatus();
}

Status Operator::CheckWatches() {
  Duration checked = hooks_.clock->Monotonic();
  while (!stop_.WaitFor(kStopPoll)) {
    const Duration now = hooks_.clock->Monotonic();
    if (now - checked < kReportInterval) continue;
    checked = now;
    keys_.Ring();  // logs new keys even if no job is reconciled
    const StaleWatches stale = JudgeWatches(Troubles(), leads(), ServedCheck());
    if (stale.action == StaleAction::kContinue) continue;
    kLog.Warning("no changes seen", {{"for", FormatDuration(stale.lasting)},
                                     {"watch", stale.watch},
                                     {"because", stale.because}});
    if (stale.action == StaleAction::kLeave) return Unavailable(stale.leaving);
  }
  return OkStatus();
}

Status Operator::Run() {
  if (stop_.requested()) return OkStatus();
  if (options_.leader_elect) RETURN_IF_ERROR(StartElection());
  if (stop_.requested()) return OkStatus();
  RETURN_IF_ERROR(StartLoop());
  RETURN_IF_ERROR(AwaitLists());
  return CheckWatches();
}

void Operator::Depart() {
  SetThreadName("departure");
  while (!stop_.WaitFor(1h)) {
  }
  const Departure departure = PlanDeparture(stop_.signal());
  if (hooks_.leaving) hooks_.leaving(departure.exit_code);
  Duration waited{0};
  for (const DepartureStep& step : departure.steps) {
    if (step.after > waited && ended_.WaitFor(step.after - waited)) return;
    waited = step.after;
    OperatorCluster* cluster = seen_cluster_;
    if (cluster == nullptr) return;
    if (step.cancel == CancelCalls::kOfLoop) {
      cluster->CancelCalls();
    } else {
      cluster->CancelLeaseCalls();
    }
  }
}

void Operator::Stop() {
  const Departure departure = PlanDeparture(stop_.signal());
  metrics_.SetSource(nullptr);
  if (manager_ != nullptr) manager_->Stop();
  if (recorder_ != nullptr) recorder_->Stop(departure.events_may_take);
  if (election_ != nullptr) election_->Stop();
  metrics_.SetLeader(options_.leader_election_id, false);
  ended_.Request(1);
  departure_.join();
  servers_.clear();
}

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
  const int code = PlanDeparture(stop.signal()).exit_code;
  one.Stop();
  kLog.Info("stopped", {{"code", code}});
  return code;
}

}  // namespace tfjob::service
