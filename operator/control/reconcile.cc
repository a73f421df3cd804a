#include "operator/control/reconcile.h"

#include <utility>
#include <variant>

#include "operator/control/act.h"
#include "operator/control/act_context.h"
#include "operator/control/cache/cache.h"
#include "operator/control/decide.h"
#include "operator/control/log.h"
#include "operator/control/memory.h"
#include "operator/control/native_api.h"
#include "operator/control/observation.h"
#include "operator/control/observe.h"
#include "operator/control/pacing.h"
#include "operator/policy/verdict.h"
#include "runtime/base/clock.h"

namespace tfjob::control {
namespace {

std::string LastCondition(const api::TFJobStatus& status) {
  if (status.conditions.empty()) return "none";
  const api::Condition& last = status.conditions.back();
  return StrCat(api::Name(last.type), "=", last.status ? "True" : "False", " ", last.reason);
}

// Logs one line for the decision, unless there is nothing to do.
void LogDecision(const Observation& observation, const Decision& decision) {
  const policy::Verdict& verdict = decision.verdict;
  const plan::Plan& plan = decision.plan;
  if (plan.empty() || !Logger::Enabled(LogLevel::kInfo)) return;
  kLog.Info("decided", {{"job", observation.key},
                        {"uid", observation.job.metadata.uid},
                        {"reconcile", observation.id},
                        {"stage", policy::Name(verdict.stage)},
                        {"condition", LastCondition(verdict.status)},
                        {"status", plan.status != nullptr ? "write" : "keep"},
                        {"creates", plan.creates.size()},
                        {"deletes", plan.deletes.size()},
                        {"events", plan.events.size()}});
}

// Returns kReadAgain if the decision contains calls that must be based on the job's current
// version. Unlike the status write, these calls would succeed even if the known version were
// outdated.
std::optional<Outcome> DoubtJob(const Decision& decision, Memory& memory) {
  const policy::Verdict& verdict = decision.verdict;
  // If the known spec were outdated, this operator would keep undoing the changes that another
  // operator makes.
  if (decision.plan.change_pod_group) return ReadAgain("the pod group changes");
  if (decision.plan.change_network_policy || verdict.delete_network_policy) {
    return ReadAgain("the NetworkPolicy changes");
  }
  // If the job is being deleted without its dependents, the garbage collector may have just removed
  // the job from the services' owners.
  if (!decision.plan.adopts.empty()) return ReadAgain("services are adopted");
  // If services that existed are gone, the job may have been deleted. The garbage collector would
  // then delete its services again, however often they are recreated.
  const bool all_exist =
      verdict.stage == policy::Stage::kRunning && verdict.create_services.empty();
  if (memory.had_services && !verdict.create_services.empty()) {
    return ReadAgain("services are gone");
  }
  memory.had_services = all_exist;
  return std::nullopt;
}

}  // namespace

Reconciler::Reconciler(const Dependencies& dependencies, Settings settings)
    : dependencies_(dependencies),
      settings_(std::move(settings)),
      reader_(std::make_unique<JobReader>(dependencies, settings_)),
      actor_(std::make_unique<Actor>(dependencies, settings_.record)) {}

Reconciler::~Reconciler() = default;

void Reconciler::Stop() {
  actor_->Stop();
}

Outcome Reconciler::Reconcile(const std::string& key) {
  const uint64_t id = ++last_id_;
  Outcome outcome;
  for (int i = 0; i < kConflictTries; ++i) {
    const auto stored = dependencies_.cache.Job(key);
    if (stored == nullptr) {
      Forget(key);
      return {.id = id};
    }
    const auto memory = MemoryOf(key, stored->metadata.uid);
    const bool had_group = memory->had_group;
    const bool had_network_policy = memory->had_network_policy;
    outcome = ReconcileOnce(key, id, *stored, *memory);
    outcome.id = id;
    if (outcome.next != Next::kReadAgain) return outcome;
    Outcome read = reader_->ReadJob(key, stored->metadata.resource_version, *memory);
    read.id = id;
    // The watch has not reported yet that the job is gone, so the next reconcile must read it
    // again.
    if (read.next == Next::kJobIsGone) {
      memory->had_group = had_group;
      memory->had_network_policy = had_network_policy;
    }
    if (read.next != Next::kDone) return read;
    memory->job_is_fresh = true;
  }
  return outcome;
}

Outcome Reconciler::ReconcileOnce(const std::string& key, uint64_t id,
                                  const objects::CustomResource& stored, Memory& memory) {
  const bool is_fresh = std::exchange(memory.job_is_fresh, false);
  const auto observed = reader_->Observe(key, id, stored, memory);
  if (const auto* early = std::get_if<Outcome>(&observed)) return *early;
  const auto& observation = std::get<Observation>(observed);
  const Decision decision = Decide(observation, settings_.policy, settings_.address);
  if (!is_fresh) {
    if (std::optional<Outcome> doubt = DoubtJob(decision, memory)) return *std::move(doubt);
  }
  return Act({observation, decision, memory});
}

Outcome Reconciler::Act(const ActContext& context) {
  const auto& [observation, decision, memory] = context;
  if (const auto wait = TimeToWait(context)) {
    return {.again_after =
                Earlier(wait, RequeueAfter({.check_nodes_after = observation.check_nodes_after,
                                            .plan = decision.plan.requeue_after}))};
  }
  const policy::Verdict& verdict = decision.verdict;
  // Expect the group and the policy only if the plan creates objects. A plan that resumes a job
  // does not create any yet.
  const bool creates = !decision.plan.creates.empty();
  const bool wants_group = creates && verdict.create_pod_group.has_value();
  if (wants_group && std::exchange(memory.had_group, false)) {
    return ReadAgain("the pod group is gone");
  }
  const bool wants_policy = creates && verdict.create_network_policy.has_value();
  if (wants_policy && std::exchange(memory.had_network_policy, false)) {
    return ReadAgain("the NetworkPolicy is gone");
  }
  LogDecision(observation, decision);
  Outcome outcome = actor_->Act(context);
  if (!verdict.delete_pod_groups.empty()) memory.had_group = false;
  if (verdict.delete_network_policy) memory.had_network_policy = false;
  if (wants_group && !outcome.NeedsRetry()) memory.had_group = true;
  if (wants_policy && !outcome.NeedsRetry()) memory.had_network_policy = true;
  const bool is_native = verdict.gang.scheduler == policy::GangScheduler::kNative;
  if (is_native && !memory.history.refusal.empty()) dependencies_.native_api.Doubt();
  outcome.again_after = RequeueAfter(
      {.check_nodes_after = observation.check_nodes_after,
       // If the job is gone, every reconcile makes the same decision until the watch reports this.
       // Reconciling again after the plan's delay would therefore be useless.
       .plan = outcome.next == Next::kJobIsGone ? std::nullopt : decision.plan.requeue_after,
       .has_more_work = std::exchange(memory.reconcile_again, false),
       .needs_retry = outcome.NeedsRetry(),
       .has_events = !memory.events.empty(),
       .waits_for_watch = observation.has_unconfirmed_writes ||
                          dependencies_.cache.WaitsForWatch(observation.key)});
  return outcome;
}

std::optional<Duration> Reconciler::TimeToWait(const ActContext& context) {
  const auto& [observation, decision, memory] = context;
  if (!memory.events.empty() ||
      !OnlyWritesCounts(decision.plan, observation.job.status, decision.verdict.status)) {
    memory.counts_behind.reset();
    return std::nullopt;
  }
  const CountsDelay delay =
      DelayCounts(memory.counts_behind, dependencies_.clock.Monotonic(), settings_.count_patience);
  memory.counts_behind = delay.behind_since;
  return delay.left;
}

std::shared_ptr<Memory> Reconciler::MemoryOf(const std::string& key, const std::string& uid) {
  MutexLock lock(mutex_);
  std::shared_ptr<Memory>& memory = memories_[key];
  if (memory == nullptr || memory->uid != uid) {
    memory = std::make_shared<Memory>();
    memory->uid = uid;
  }
  return memory;
}

void Reconciler::Forget(const std::string& key) {
  MutexLock lock(mutex_);
  memories_.erase(key);
}

}  // namespace tfjob::control
