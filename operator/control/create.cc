#include "operator/control/create.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "operator/control/act_context.h"
#include "operator/control/admitted_policy.h"
#include "operator/control/cache/cache.h"
#include "operator/control/call_errors.h"
#include "operator/control/measurements/observer.h"
#include "operator/control/memory.h"
#include "operator/control/observation.h"
#include "operator/control/pacing.h"
#include "operator/control/report.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {
namespace {

using objects::Kind;
using render::DesiredObject;

policy::BlockedName HolderOf(const objects::ObjectMeta& metadata, Duration now) {
  const objects::OwnerReference* controller = metadata.controller();
  return {controller == nullptr ? "nobody" : StrCat(controller->kind, " ", controller->name),
          metadata.uid, now};
}

// Returns true if the server dropped the pod's group membership, as it does without an error if its
// feature gate is off.
bool LacksItsGroup(const client::Object& created, const policy::Gang& gang) {
  const auto pod = client::As<objects::Pod>(created);
  return pod != nullptr && gang.scheduler == policy::GangScheduler::kNative && !gang.alone &&
         !pod->in_scheduling_group;
}

// Returns an error if the NetworkPolicy does not have the rules that the job needs.
Status CheckRules(const ActContext& context, const DesiredObject& wanted,
                  const client::Object& object, bool was_there) {
  if (wanted.kind != Kind::kNetworkPolicy) return OkStatus();
  const std::string difference = DifferenceOfPolicy(context.job(), object);
  if (difference.empty()) return OkStatus();
  // If the policy already existed, request a retry: once the watch has reported the policy, a
  // reconcile restores the rules.
  if (was_there) {
    return Unavailable(difference, " of NetworkPolicy ", wanted.name, " is still to be restored");
  }
  return PermissionDenied(ChangedByWebhookMessage(wanted.name, difference));
}

}  // namespace

struct Creator::CreateResult {
  Status status;                              // if OK, either `object` or `holder` is set
  std::optional<client::Object> object;       // the job's object, which now exists
  std::optional<policy::BlockedName> holder;  // the object of another owner with this name
  // True if the object already existed, so an earlier reconcile may have reported it. Such an
  // object gets a separate event, whose name prevents the event from being sent twice.
  bool was_there = false;
};

struct Creator::BatchResult {
  Outcome of_all;  // the first error that would affect all further objects
  Status of_one;   // the first error that concerns only one object
  std::set<api::ReplicaType> refused;
};

Outcome Creator::CreateAll(const ActContext& context) {
  const std::vector<DesiredObject>& creates = context.decision.plan.creates;
  context.memory.history.refusal.clear();
  const std::vector<DesiredObject> now = CreatesOfOneReconcile(creates);
  context.memory.reconcile_again |= now.size() < creates.size();
  Wanted left(now);
  Status first;
  while (!left.empty()) {
    const Kind kind = left.front().kind;
    const auto end = std::find_if(left.begin(), left.end(),
                                  [kind](const DesiredObject& next) { return next.kind != kind; });
    const size_t count = static_cast<size_t>(end - left.begin());
    Outcome outcome = CreateKind(context, left.first(count));
    left = left.subspan(count);
    const bool ends = objects::IsOnePerJob(kind) || !ConcernsOneObject(outcome.error);
    if (outcome.next != Next::kDone && ends && first.ok()) return outcome;
    KeepFirst(first, std::move(outcome.error));
  }
  return OutcomeOf(std::move(first));
}

Outcome Creator::CreateKind(const ActContext& context, Wanted wanted) {
  std::vector<Child> created;
  Outcome outcome = CreateInBatches(context, wanted, created);
  if (!created.empty()) {
    context.memory.events.push_back(CreatedEvent(context.job(), wanted.front().kind, created));
  }
  return outcome;
}

Outcome Creator::CreateInBatches(const ActContext& context, Wanted wanted,
                                 std::vector<Child>& created) {
  std::vector<DesiredObject> left(wanted.begin(), wanted.end());
  Status first;
  for (int batch = 0; !left.empty(); ++batch) {
    if (stopping_) return OutcomeOf(Cancelled("the operator is stopping"));
    if (!dependencies_.cache.JobExists(context.observation.key, context.job().metadata.uid)) {
      return {Next::kJobIsGone};
    }
    const size_t count = std::min(BatchSize(batch), left.size());
    BatchResult result = CreateBatch(context, Wanted(left).first(count), created);
    if (result.of_all.next != Next::kDone) return result.of_all;
    KeepFirst(first, std::move(result.of_one));
    left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(count));
    std::erase_if(left, [&](const DesiredObject& object) {
      return result.refused.contains(object.slot.type);
    });
  }
  return OutcomeOf(std::move(first));
}

Creator::BatchResult Creator::CreateBatch(const ActContext& context, Wanted wanted,
                                          std::vector<Child>& created) {
  std::vector<CreateResult> results(wanted.size());
  dependencies_.pool.ParallelFor(static_cast<int64_t>(wanted.size()), 1,
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     results[i] = CreateOne(context, wanted[i]);
                                     dependencies_.record_progress(context.observation.key);
                                   }
                                 });
  BatchResult batch;
  std::vector<TriedCreate> tried;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Outcome outcome = Record(context, wanted[i], std::move(results[i]), created);
    tried.push_back({wanted[i].slot.type, outcome.error});
    if (ConcernsOneObject(outcome.error)) {
      KeepFirst(batch.of_one, std::move(outcome.error));
    } else if (batch.of_all.next == Next::kDone) {
      batch.of_all = std::move(outcome);
    }
  }
  batch.refused = RefusedTypes(tried);
  return batch;
}

// If an object of this job already has the name, the create counts as successful: the response to
// an earlier create was lost, or the watch has not reported the object yet. If the response to this
// create is lost, reads the object to find out whether it was created.
Creator::CreateResult Creator::CreateOne(const ActContext& context, const DesiredObject& wanted) {
  StatusOr<client::Object> object =
      dependencies_.client.Create(wanted.kind, context.decision.desired.Build(wanted));
  if (absl::IsAlreadyExists(object.status()) || MayHaveBeenExecuted(object.status())) {
    return ReadExisting(context, wanted, object.status());
  }
  if (!object.ok()) return {.status = WithoutConflict(object.status())};
  return {.object = *std::move(object)};
}

Creator::CreateResult Creator::ReadExisting(const ActContext& context, const DesiredObject& wanted,
                                            const Status& create_error) {
  const client::Key key{wanted.kind, context.name_space(), wanted.name};
  StatusOr<client::Object> object = dependencies_.ReadObject(key);
  if (absl::IsNotFound(object.status())) {
    // The object was not created, or is already gone. The next reconcile tries again.
    if (absl::IsInternal(create_error)) return {.status = create_error};
    return {.status = Unavailable(Message(create_error))};
  }
  if (!object.ok()) return {.status = WithoutConflict(object.status())};
  const objects::ObjectMeta& metadata = client::MetadataOf(*object);
  if (!metadata.IsControlledBy(context.job().metadata.uid)) {
    return {.holder = HolderOf(metadata, dependencies_.clock.Monotonic())};
  }
  if (objects::IsOnePerJob(wanted.kind) && metadata.terminating()) {
    return {.status = Unavailable(client::ToString(key), " is still being deleted")};
  }
  return {.object = *std::move(object), .was_there = true};
}

Outcome Creator::Record(const ActContext& context, const DesiredObject& wanted, CreateResult result,
                        std::vector<Child>& created) {
  policy::History& history = context.memory.history;
  auto& blocked = wanted.kind == Kind::kPod ? history.blocked_pods : history.blocked_services;
  if (result.holder && objects::IsOnePerJob(wanted.kind)) {
    result.status = InvalidArgument(Name(wanted.kind), " ", wanted.name, " belongs to ",
                                    result.holder->holder, ", not to this job");
  }
  if (result.status.ok() && result.object) {
    result.status = CheckRules(context, wanted, *result.object, result.was_there);
  }
  if (!result.status.ok()) return RecordFailure(context, wanted, std::move(result.status));
  if (result.holder) {
    blocked[wanted.name] = *std::move(result.holder);
    context.memory.reconcile_again = true;
    return {};
  }
  blocked.erase(wanted.name);
  RecordObject(context, wanted, result, created);
  return {};
}

Outcome Creator::RecordFailure(const ActContext& context, const DesiredObject& wanted,
                               Status error) {
  // FailedPrecondition means that the namespace is being deleted.
  if (absl::IsFailedPrecondition(error)) return {Next::kJobIsGone};
  dependencies_.observer.OnCreateFailed(wanted.kind, context.name_space());
  const bool kind_is_unknown = objects::IsGangKind(wanted.kind) && absl::IsNotFound(error);
  if (absl::IsNotFound(error) && !kind_is_unknown) return {Next::kJobIsGone};
  if (IsRefusal(error) || kind_is_unknown) {
    std::string& refusal = context.memory.history.refusal;
    if (refusal.empty()) refusal = std::string(Message(error));
    context.ReportOnce(CreateFailedEvent(context.job(), wanted.kind, error));
  }
  if (kind_is_unknown) error = FailedPrecondition(Message(error));
  return OutcomeOf(Annotate(error, StrCat("creating ", Name(wanted.kind), " ", wanted.name)));
}

void Creator::RecordObject(const ActContext& context, const DesiredObject& wanted,
                           const CreateResult& result, std::vector<Child>& created) {
  // The server has accepted an object, so any later refusal is a new problem, and is reported
  // again.
  std::erase_if(context.memory.history.reported, IsCreateFailed);
  const Child child = {wanted.name, client::MetadataOf(*result.object).uid};
  if (result.was_there) {
    context.memory.events.push_back(CreatedEvent(context.job(), wanted.kind, {child}));
  } else {
    created.push_back(child);
  }
  dependencies_.cache.RecordCreate(context.observation.key, wanted.kind, *result.object);
  if (LacksItsGroup(*result.object, context.decision.verdict.gang)) {
    context.ReportOnce(SchedulingGroupDroppedEvent(context.job(), wanted.name));
  }
  dependencies_.observer.OnCreated(wanted.kind, context.name_space());
}

}  // namespace tfjob::control
