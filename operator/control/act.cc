#include "operator/control/act.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/control/act_context.h"
#include "operator/control/admitted_policy.h"
#include "operator/control/cache/cache.h"
#include "operator/control/call_errors.h"
#include "operator/control/measurements/observer.h"
#include "operator/control/memory.h"
#include "operator/control/observation.h"
#include "operator/control/pacing.h"
#include "operator/control/report.h"
#include "operator/control/send_events.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {
namespace {

using objects::Kind;

// Kubernetes' default for pods that do not set a grace period.
constexpr int64_t kDefaultGraceSeconds = 30;

// Returns whether the pod has finalizers, which keep the pod even after its grace period.
bool HasFinalizers(const policy::Snapshot& snapshot, const std::string& uid) {
  return std::any_of(snapshot.pods.begin(), snapshot.pods.end(), [&](const auto& pod) {
    return pod->metadata.uid == uid && !pod->metadata.finalizers.empty();
  });
}

}  // namespace

Outcome Actor::Act(const ActContext& context) {
  Status first = Adopt(context);
  const Status changed = ChangeAll(context);
  KeepFirst(first, changed);
  if (changed.ok()) {
    Outcome created = creator_.CreateAll(context);
    if (created.next == Next::kJobIsGone) context.memory.reconcile_again = false;
    KeepFirst(first, std::move(created.error));
  }
  if (absl::IsCancelled(first)) return OutcomeOf(std::move(first));
  const plan::Plan& plan = context.decision.plan;
  if (plan.status != nullptr) {
    Outcome written = WriteStatus(context);
    if (written.next != Next::kDone) return written;
  }
  dependencies_.cache.Acknowledge(context.observation.key, context.observation.snapshot);
  KeepFirst(first, DeleteAll(context));
  context.memory.events.insert(context.memory.events.end(), plan.events.begin(), plan.events.end());
  SendEvents(dependencies_, record_, context.memory);
  return OutcomeOf(std::move(first));
}

Status Actor::Adopt(const ActContext& context) {
  Status first;
  for (const plan::Adopt& adopt : context.decision.plan.adopts) {
    const client::Key key{Kind::kService, context.name_space(), adopt.name};
    const Status status = dependencies_.client.Patch(key, *adopt.patch).status();
    if (IsGoneOrTaken(status)) continue;
    KeepFirst(first, Annotate(status, StrCat("adopting ", client::ToString(key))));
  }
  return first;
}

Status Actor::ChangeAll(const ActContext& context) {
  const plan::Plan& plan = context.decision.plan;
  Status first;
  for (const auto* change : {&plan.change_pod_group, &plan.change_network_policy}) {
    if (*change) KeepFirst(first, ChangeOne(context, **change));
  }
  return first;
}

Status Actor::ChangeOne(const ActContext& context, const plan::Change& change) {
  const client::Key key{change.kind, context.name_space(), change.name};
  const StatusOr<client::Object> changed = dependencies_.client.Patch(key, *change.patch);
  Status status = changed.status();
  if (IsGoneOrTaken(status)) {
    // Pods may be created although the pod group could not be changed, but not if the NetworkPolicy
    // could not be changed.
    if (change.kind != Kind::kNetworkPolicy) return OkStatus();
    return Unavailable("changing ", client::ToString(key), ": ", Message(status));
  }
  if (status.ok() && change.kind == Kind::kNetworkPolicy) {
    status = RecordPolicyChange(context, *changed);
  }
  if (IsRefusal(status)) context.ReportOnce(ChangeFailedEvent(context.job(), change.kind, status));
  return Annotate(status, StrCat("changing ", client::ToString(key)));
}

Status Actor::RecordPolicyChange(const ActContext& context, const client::Object& changed) {
  context.memory.history.RecordPolicyChange(dependencies_.clock.Now(),
                                            dependencies_.clock.Monotonic());
  const auto& before = context.observation.snapshot.network_policy;
  // Record the change. Otherwise, a late event with the old state would look as if another client
  // had undone it.
  dependencies_.cache.RecordPolicyChange(context.observation.key, before->metadata.resource_version,
                                         changed);
  const std::string difference = DifferenceOfPolicy(context.job(), changed);
  if (difference.empty()) return OkStatus();
  return PermissionDenied(ChangedByWebhookMessage(before->metadata.name, difference));
}

Outcome Actor::WriteStatus(const ActContext& context) {
  const api::TFJob& job = context.job();
  const policy::Verdict& verdict = context.decision.verdict;
  const Json& wanted = *context.decision.plan.status;
  const StatusOr<client::Object> written = dependencies_.client.UpdateStatus(Kind::kTFJob, wanted);
  const Status& error = written.status();
  if (written.ok()) {
    dependencies_.cache.RecordWrite(context.observation.key, job.metadata.resource_version,
                                    *written);
    dependencies_.observer.OnStatus(job.metadata, job.status, verdict.status);
    return {};
  }
  // Even Aborted may mean that the server executed the write: if a connection breaks, the request
  // is sent again, and then conflicts with itself.
  if (MayHaveBeenExecuted(error) || absl::IsAborted(error)) {
    context.memory.unanswered = {PrintJson(wanted["status"]), context.decision.plan.events,
                                 job.status, verdict.status};
  }
  if (absl::IsAborted(error)) return ReadAgain(Message(error));
  if (absl::IsNotFound(error)) return {Next::kJobIsGone};
  return OutcomeOf(
      Annotate(error, StrCat("writing the status of TFJob ", context.observation.key)));
}

Status Actor::DeleteAll(const ActContext& context) {
  const std::vector<plan::Delete>& deletes = context.decision.plan.deletes;
  const size_t count = std::min(deletes.size(), kMaxDeletes);
  context.memory.reconcile_again |= count < deletes.size();
  std::vector<Status> results(count);
  dependencies_.pool.ParallelFor(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      results[i] = DeleteOne(context, deletes[i]);
      dependencies_.record_progress(context.observation.key);
    }
  });
  Status first;
  for (size_t i = 0; i < count; ++i)
    KeepFirst(first, RecordDelete(context, deletes[i], results[i]));
  ReportDeletes(context, results);
  return first;
}

void Actor::ReportDeletes(const ActContext& context, const std::vector<Status>& results) {
  std::vector<Child> deleted;
  for (size_t i = 0; i < results.size(); ++i) {
    const plan::Delete& wanted = context.decision.plan.deletes[i];
    if (results[i].ok()) deleted.push_back({wanted.name, wanted.uid});
    // Report consecutive deletes of kinds with the same name, such as the pod groups of several
    // schedulers, in one event.
    const bool is_last = i + 1 == results.size() ||
                         Name(context.decision.plan.deletes[i + 1].kind) != Name(wanted.kind);
    if (!is_last || deleted.empty()) continue;
    context.memory.events.push_back(
        DeletedEvent(context.job(), wanted.kind, std::exchange(deleted, {})));
  }
}

Status Actor::DeleteOne(const ActContext& context, const plan::Delete& wanted) {
  const client::Key key{wanted.kind, context.name_space(), wanted.name};
  client::DeleteOptions options;
  options.uid = wanted.uid;
  options.grace_period_seconds = wanted.grace_period_seconds;
  const Status status = dependencies_.client.Delete(key, options);
  if (!absl::IsAborted(status)) return status;
  // Find out whether the name now belongs to another object, or whether the delete merely
  // conflicted with another write.
  const StatusOr<client::Object> found = dependencies_.ReadObject(key);
  if (!found.ok()) return found.status();
  if (client::MetadataOf(*found).uid != wanted.uid) return NotFound(Message(status));
  return WithoutConflict(status);
}

Status Actor::RecordDelete(const ActContext& context, const plan::Delete& wanted,
                           const Status& status) {
  Cache& cache = dependencies_.cache;
  const std::string& key = context.observation.key;
  if (absl::IsNotFound(status)) {
    cache.RecordGone(key, wanted.uid);
    return OkStatus();
  }
  if (!status.ok()) {
    if (IsRefusal(status)) {
      context.ReportOnce(DeleteFailedEvent(context.job(), wanted.kind, wanted.uid, status));
    }
    return Annotate(status, StrCat("deleting ", wanted.name));
  }
  dependencies_.observer.OnDeleted(wanted.kind, context.name_space());
  const bool at_once =
      wanted.grace_period_seconds == 0 && !HasFinalizers(context.observation.snapshot, wanted.uid);
  if (wanted.kind != Kind::kPod || at_once) {
    cache.RecordGone(key, wanted.uid);
    return OkStatus();
  }
  // Assume a grace period, because the server's response does not contain it. The watch will report
  // the actual period.
  cache.RecordDelete(key, wanted.uid,
                     {TruncateToSeconds(dependencies_.clock.Now()),
                      wanted.grace_period_seconds.value_or(kDefaultGraceSeconds)});
  return OkStatus();
}

}  // namespace tfjob::control
