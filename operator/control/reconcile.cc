#include "operator/control/reconcile.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/status_json.h"
#include "operator/control/admit.h"
#include "operator/control/log.h"
#include "operator/plan/plan.h"
#include "operator/policy/decide.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/gang.h"
#include "operator/policy/rules/managed_by.h"

namespace tfjob::control {
namespace {

using objects::CustomResource;
using objects::Kind;

// How often a reconcile is repeated at once if another writer has changed the job meanwhile.
constexpr int kConflictTries = 4;
// A create that no watch event has confirmed for this long is read.
constexpr Duration kWatchPatience = 10s;
// When events that could not be sent are tried again, unless something happens before.
constexpr Duration kEventRetry = 5s;
// How often a job checks whether the first list of pod groups has arrived.
constexpr Duration kPodGroupPoll = 50ms;

client::Key JobKey(const std::string& key) {
  const size_t slash = key.find('/');
  return {Kind::kTFJob, key.substr(0, slash), key.substr(slash + 1)};
}

std::shared_ptr<const CustomResource> JobOf(const client::Object& object) {
  return std::get<std::shared_ptr<const CustomResource>>(object);
}

std::optional<Duration> Earlier(std::optional<Duration> a, std::optional<Duration> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

std::string LastCondition(const api::TFJobStatus& status) {
  if (status.conditions.empty()) return "none";
  const api::Condition& last = status.conditions.back();
  return StrCat(api::Name(last.type), "=", last.status ? "True" : "False", " ", last.reason);
}

// True if nothing but the numbers of active, succeeded, failed or ready replicas has changed.
bool OnlyCountsDiffer(const api::TFJobStatus& before, api::TFJobStatus after) {
  after.ready = before.ready;
  for (auto& [type, replica] : after.replica_statuses) {
    const auto old = before.replica_statuses.find(type);
    if (old == before.replica_statuses.end()) return false;
    replica.active = old->second.active;
    replica.succeeded = old->second.succeeded;
    replica.failed = old->second.failed;
  }
  return after == before;
}

// Logs one line per decision, none if there is nothing to do.
void LogDecision(const Look& look, const policy::Verdict& verdict, const plan::Plan& plan) {
  if (plan.empty() || !Logger::Enabled(LogLevel::kInfo)) return;
  kLog.Info("decided", {{"job", look.key},
                        {"uid", look.job.metadata.uid},
                        {"reconcile", look.id},
                        {"stage", policy::Name(verdict.stage)},
                        {"condition", LastCondition(verdict.status)},
                        {"status", plan.status != nullptr ? "write" : "keep"},
                        {"creates", plan.creates.size()},
                        {"deletes", plan.deletes.size()},
                        {"events", plan.events.size()}});
}

// Unblocks names whose holder is gone, so that they may be tried at once.
void Unblock(const std::vector<std::string>& freed, policy::History& history) {
  if (freed.empty()) return;
  const auto is_free = [&](const auto& blocked) {
    return std::find(freed.begin(), freed.end(), blocked.second.holder_uid) != freed.end();
  };
  std::erase_if(history.blocked_pods, is_free);
  std::erase_if(history.blocked_services, is_free);
}

}  // namespace

Reconciler::Reconciler(client::Client& client, Cache& cache, Clock& clock, ThreadPool& pool,
                       Observer& observer, NativeApi& native_api, WatchPodGroups watch_pod_groups,
                       Settings settings)
    : client_(client),
      cache_(cache),
      clock_(clock),
      observer_(observer),
      native_api_(native_api),
      watch_pod_groups_(std::move(watch_pod_groups)),
      settings_(std::move(settings)),
      actor_(client, cache, clock, pool, observer, settings_.record) {}

Outcome Reconciler::Reconcile(const std::string& key) {
  const uint64_t id = ++last_id_;
  Outcome outcome;
  for (int i = 0; i < kConflictTries; ++i) {
    const auto stored = cache_.Job(key);
    if (stored == nullptr) {
      Forget(key);
      return {id, OkStatus(), std::nullopt};
    }
    const auto memory = MemoryOf(key, stored->metadata.uid);
    outcome = LookAndAct(key, stored, id, *memory);
    outcome.id = id;
    if (outcome.status.code() != StatusCode::kAborted) return outcome;
    const Status reread = Reread(key, stored->metadata.resource_version, *memory);
    if (reread.code() == StatusCode::kNotFound) return {id, OkStatus(), {}};  // watch reports it
    if (!reread.ok()) return {id, reread, std::nullopt};
  }
  return outcome;
}

Outcome Reconciler::LookAndAct(const std::string& key,
                               const std::shared_ptr<const CustomResource>& stored, uint64_t id,
                               Memory& memory) {
  // Aborted makes the caller read the job and start again.
  if (memory.unanswered) return {id, Aborted("a status write had no answer"), std::nullopt};
  if (cache_.Doubted(key)) return {id, Aborted("a list lacks our status write"), std::nullopt};
  if (Status confirmed = Confirm(key); !confirmed.ok()) return {id, confirmed, std::nullopt};

  Admission admission = Admit(*stored, settings_.default_clean_pod_policy);
  const policy::Gang gang = policy::GangOf(admission.job, settings_.policy);
  std::string native_version;
  if (gang.scheduler == policy::GangScheduler::kNative) {
    StatusOr<std::string> asked = native_api_.Version();
    if (!asked.ok()) return {id, asked.status(), std::nullopt};
    native_version = *std::move(asked);
  }
  if (!SeesPodGroup(admission.job, gang)) return {id, OkStatus(), kPodGroupPoll};
  Look look{key, id, std::move(admission.job), cache_.Look(key, stored->metadata.uid)};
  look.snapshot.native_version = std::move(native_version);
  Unblock(cache_.TakeFreed(key), memory.history);
  const Time now = clock_.Now();
  Outcome outcome;
  outcome.again_after = ObserveNodes(now, look.snapshot);
  look.snapshot.history = &memory.history;
  policy::Remember(look.job, look.snapshot, now, settings_.policy, memory.history);

  const Decision decision = Decide(look, admission.verdict, now);
  if (const auto wait = CanWait(look, decision, memory)) {
    outcome.again_after = Earlier(outcome.again_after, wait);
    return outcome;
  }
  const bool wants_group = decision.verdict.create_pod_group.has_value();
  if (wants_group && std::exchange(memory.had_group, false)) {
    return {id, Aborted("the pod group is gone"), std::nullopt};
  }
  LogDecision(look, decision.verdict, decision.plan);
  outcome.status = actor_.Act(look, decision, memory);
  if (outcome.status.code() == StatusCode::kNotFound) outcome.status = OkStatus();
  if (!decision.verdict.delete_pod_groups.empty()) memory.had_group = false;
  if (wants_group && outcome.status.ok()) memory.had_group = true;
  if (!memory.history.refusal.empty()) native_api_.Doubt();
  outcome.again_after = Earlier(outcome.again_after, decision.plan.requeue_after);
  // After an error the backoff decides.
  const bool look_again = std::exchange(memory.look_again, false);
  if (look_again && outcome.status.ok()) outcome.again_after = Duration(0);
  if (!memory.events.empty()) outcome.again_after = Earlier(outcome.again_after, kEventRetry);
  if (cache_.WaitsForWatch(key)) {
    outcome.again_after = Earlier(outcome.again_after, kWatchPatience);
  }
  return outcome;
}

bool Reconciler::SeesPodGroup(const api::TFJob& job, const policy::Gang& gang) {
  return gang.scheduler == policy::GangScheduler::kNone || policy::IsManagedElsewhere(job) ||
         watch_pod_groups_(gang.scheduler);
}

std::optional<Duration> Reconciler::CanWait(const Look& look, const Decision& decision,
                                            Memory& memory) {
  const plan::Plan& plan = decision.plan;
  const bool only_status = plan.status != nullptr && plan.creates.empty() && plan.deletes.empty() &&
                           plan.adopts.empty() && plan.events.empty() && !plan.change_pod_group;
  if (!only_status || !memory.events.empty() ||
      !OnlyCountsDiffer(look.job.status, decision.verdict.status)) {
    memory.counts_behind.reset();
    return std::nullopt;
  }
  const Duration now = clock_.Monotonic();
  const Duration left = memory.counts_behind.value_or(now) + settings_.count_patience - now;
  if (left <= Duration(0)) {
    memory.counts_behind.reset();
    return std::nullopt;
  }
  if (!memory.counts_behind) memory.counts_behind = now;
  return left;
}

std::optional<Duration> Reconciler::ObserveNodes(Time now, policy::Snapshot& snapshot) {
  if (!settings_.is_node_lost) return std::nullopt;
  LostNodes lost =
      FindLostNodes(snapshot, now, settings_.policy.lost_pod_after, settings_.is_node_lost);
  snapshot.lost_nodes = std::move(lost.names);
  return lost.ask_again;
}

Decision Reconciler::Decide(const Look& look, const Status& admitted, Time now) {
  const policy::Options& options = settings_.policy;
  Decision decision;
  decision.verdict = admitted.ok()
                         ? policy::Decide(look.job, look.snapshot, now, options)
                         : policy::Refuse(look.job, look.snapshot, admitted, now, options);
  StatusOr<render::Desired> desired = render::Render(look.job, decision.verdict, settings_.address);
  if (!desired.ok()) {
    decision.verdict = policy::Refuse(look.job, look.snapshot, desired.status(), now, options);
    desired = render::Render(look.job, decision.verdict, settings_.address);
  }
  if (desired.ok()) decision.desired = *std::move(desired);
  decision.plan = plan::MakePlan(look.job, decision.verdict, decision.desired, look.snapshot);
  return decision;
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

Status Reconciler::Reread(const std::string& key, const std::string& known_version,
                          Memory& memory) {
  StatusOr<client::Object> fresh = client_.Get(JobKey(key));
  if (fresh.status().code() == StatusCode::kNotFound) memory.unanswered.reset();
  if (!fresh.ok()) return Annotate(fresh.status(), StrCat("reading TFJob ", key));
  const auto found = JobOf(*fresh);
  SettleUnanswered(*found, memory);
  cache_.Wrote(key, known_version, found);
  return OkStatus();
}

void Reconciler::SettleUnanswered(const CustomResource& found, Memory& memory) {
  if (!memory.unanswered) return;
  const Memory::Unanswered attempt = *std::exchange(memory.unanswered, std::nullopt);
  if (found.metadata.uid != memory.uid) return;
  // Compares values, since the server adds defaults.
  const Json status = api::StatusToJson(api::ReadStatus(JsonField(*found.object)["status"]));
  if (PrintJson(status) != attempt.status) return;
  observer_.OnStatus(found.metadata, attempt.before, attempt.after, clock_.Now());
  memory.events.insert(memory.events.end(), attempt.events.begin(), attempt.events.end());
}

Status Reconciler::Confirm(const std::string& key) {
  for (const client::Key& object : cache_.Unconfirmed(key, kWatchPatience)) {
    StatusOr<client::Object> found = client_.Get(object);
    if (!found.ok() && found.status().code() != StatusCode::kNotFound) {
      return Annotate(found.status(), StrCat("reading ", client::ToString(object)));
    }
    cache_.Read(key, object, found.ok() ? std::optional(*std::move(found)) : std::nullopt);
  }
  return OkStatus();
}

}  // namespace tfjob::control
