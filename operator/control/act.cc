#include "operator/control/act.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/reasons.h"
#include "operator/control/log.h"
#include "operator/control/report.h"

namespace tfjob::control {
namespace {

using objects::Kind;

// Small enough not to flood a namespace whose quota is exhausted, large enough for one round trip
// per typical job.
constexpr size_t kFirstBatch = 8;
// Creates per reconcile, limited so that the status of a large job does not wait for all of them.
constexpr size_t kMaxCreates = 256;
constexpr size_t kMaxDeletes = 256;
constexpr size_t kMaxEventsKept = 1000;

// True for the objects without which no pods are wanted.
bool IsOfGang(Kind kind) {
  return kind == Kind::kWorkload || objects::IsPodGroup(kind);
}

policy::BlockedName HolderOf(const objects::ObjectMeta& metadata, Time now) {
  const objects::OwnerReference* controller = metadata.controller();
  return {controller == nullptr ? "nobody" : StrCat(controller->kind, " ", controller->name),
          metadata.uid, now};
}

// True for errors that concern only this one object.
bool IsAboutObject(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument;
}

// True for errors with a reason from the server that a user should read. Internal is one of them
// once it is known that the call was not carried out: a failing admission webhook may fail forever.
bool IsRefusal(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kPermissionDenied || status.code() == StatusCode::kInternal;
}

// True if the server may have carried out the call.
bool IsUnanswered(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded || status.code() == StatusCode::kInternal;
}

bool IsPassing(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kResourceExhausted:
    case StatusCode::kAborted:
    case StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

// Reports a problem once, however long it lasts.
void TellOnce(plan::NamedEvent event, Memory& memory) {
  if (memory.history.reported.count(event.cause) > 0) return;
  const auto same = [&](const plan::NamedEvent& waiting) { return waiting.cause == event.cause; };
  if (std::any_of(memory.events.begin(), memory.events.end(), same)) return;
  memory.events.push_back(std::move(event));
}

// A server whose feature gate is off silently drops the field.
bool IsAloneAgainstOurWill(const client::Object& created, const policy::Gang& gang) {
  const auto* pod = std::get_if<std::shared_ptr<const objects::Pod>>(&created);
  return pod != nullptr && gang.scheduler == policy::GangScheduler::kNative && !gang.alone &&
         !(*pod)->in_scheduling_group;
}

void Keep(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

}  // namespace

Status Actor::Act(const Look& look, const Decision& decision, Memory& memory) {
  const plan::Plan& plan = decision.plan;
  Status first = Adopt(look, plan);
  const Status arranged = ArrangePodGroup(look, plan, memory);
  Keep(first, arranged);
  if (arranged.ok()) {
    const Status created = CreateAll(look, decision, memory);
    if (created.code() == StatusCode::kNotFound) {
      // The job is gone, or is being deleted with its namespace: there is no reason
      // to reconcile again.
      memory.look_again = false;
    } else {
      Keep(first, created);
    }
  }
  if (first.code() == StatusCode::kCancelled) return first;
  if (plan.status != nullptr) RETURN_IF_ERROR(WriteStatus(look, decision, memory));
  cache_.Acknowledge(look.key, look.snapshot);
  Keep(first, DeleteAll(look, plan, memory));
  memory.events.insert(memory.events.end(), plan.events.begin(), plan.events.end());
  SendEvents(memory);
  return first;
}

Status Actor::Adopt(const Look& look, const plan::Plan& plan) {
  Status first;
  for (const plan::Adopt& adopt : plan.adopts) {
    const client::Key key{Kind::kService, look.job.metadata.name_space, adopt.name};
    Status status = client_.Patch(key, *adopt.patch).status();
    // Gone, or owned by another controller by now: the watch will report it.
    if (status.code() == StatusCode::kNotFound || status.code() == StatusCode::kAborted) continue;
    Keep(first, Annotate(status, StrCat("adopting ", client::ToString(key))));
  }
  return first;
}

Status Actor::ArrangePodGroup(const Look& look, const plan::Plan& plan, Memory& memory) {
  if (!plan.change_pod_group) return OkStatus();
  const plan::ChangePodGroup& change = *plan.change_pod_group;
  const client::Key key{change.kind, look.job.metadata.name_space, change.name};
  const Status status = client_.Patch(key, *change.patch).status();
  // Gone, or owned by another controller by now: the watch will report it.
  if (status.code() == StatusCode::kNotFound || status.code() == StatusCode::kAborted) {
    return OkStatus();
  }
  if (IsRefusal(status)) TellOnce(ChangeFailedEvent(look.job, status), memory);
  return Annotate(status, StrCat("changing ", client::ToString(key)));
}

Status Actor::CreateAll(const Look& look, const Decision& decision, Memory& memory) {
  const plan::Plan& plan = decision.plan;
  memory.history.refusal.clear();
  std::vector<render::DesiredObject> workloads;
  std::vector<render::DesiredObject> groups;
  std::vector<render::DesiredObject> services;
  std::vector<render::DesiredObject> pods;
  const size_t count = std::min(plan.creates.size(), kMaxCreates);
  memory.look_again |= count < plan.creates.size();
  for (size_t i = 0; i < count; ++i) {
    const render::DesiredObject& wanted = plan.creates[i];
    (wanted.kind == Kind::kPod          ? pods
     : wanted.kind == Kind::kService    ? services
     : objects::IsPodGroup(wanted.kind) ? groups
                                        : workloads)
        .push_back(wanted);
  }
  // Without their group, pods would be placed one by one; without its workload, a group is refused.
  RETURN_IF_ERROR(Create(look, std::move(workloads), decision, memory));
  RETURN_IF_ERROR(Create(look, std::move(groups), decision, memory));
  Status first = Create(look, std::move(services), decision, memory);
  if (!first.ok() && !IsAboutObject(first)) return first;
  Keep(first, Create(look, std::move(pods), decision, memory));
  return first;
}

Status Actor::Create(const Look& look, std::vector<render::DesiredObject> wanted,
                     const Decision& decision, Memory& memory) {
  if (wanted.empty()) return OkStatus();
  const Kind kind = wanted.front().kind;
  std::vector<Child> created;
  const Status status = CreateInBatches(look, std::move(wanted), decision, created, memory);
  if (!created.empty()) memory.events.push_back(CreatedEvent(look.job, kind, created));
  return status;
}

Status Actor::CreateInBatches(const Look& look, std::vector<render::DesiredObject> wanted,
                              const Decision& decision, std::vector<Child>& created,
                              Memory& memory) {
  Status first;
  for (size_t batch = kFirstBatch; !wanted.empty(); batch *= 2) {
    if (stopping_) return Cancelled("the operator is stopping");
    if (!cache_.Stands(look.key, look.job.metadata.uid)) {
      return NotFound("TFJob ", look.key, " has been deleted");
    }
    const size_t count = std::min(batch, wanted.size());
    std::vector<CreateResult> results(count);
    pool_.ParallelFor(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) results[i] = CreateOne(look, wanted[i], decision);
    });
    std::map<api::ReplicaType, bool> refused;  // by type: whether all of this batch were refused
    Status of_all;                             // an error that would affect all
    for (size_t i = 0; i < count; ++i) {
      const Status status =
          Note(look, wanted[i], decision.verdict.gang, std::move(results[i]), created, memory);
      refused.emplace(wanted[i].slot.type, true).first->second &= IsAboutObject(status);
      if (!IsAboutObject(status)) Keep(of_all, status);
      Keep(first, status);
    }
    if (!of_all.ok()) return of_all;
    wanted.erase(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(count));
    // The others of that type have the same template.
    std::erase_if(wanted, [&](const render::DesiredObject& object) {
      const auto type = refused.find(object.slot.type);
      return type != refused.end() && type->second;
    });
  }
  return first;
}

// An error from a server that cannot even read says nothing about the object.
StatusOr<client::Object> Actor::Find(const client::Key& key) {
  StatusOr<client::Object> found = client_.Get(key);
  if (found.status().code() == StatusCode::kInternal) return Unavailable(Message(found.status()));
  return found;
}

// A taken name is a success if its holder is ours: the answer to an earlier create was lost, or the
// watch has not shown it yet. So is a create without an answer whose object exists.
Actor::CreateResult Actor::CreateOne(const Look& look, const render::DesiredObject& wanted,
                                     const Decision& decision) {
  StatusOr<client::Object> object = client_.Create(wanted.kind, decision.desired.Build(wanted));
  bool was_there = false;
  if (object.status().code() == StatusCode::kAlreadyExists || IsUnanswered(object.status())) {
    const client::Key key{wanted.kind, look.job.metadata.name_space, wanted.name};
    const Status refused = object.status();
    was_there = true;
    object = Find(key);
    if (object.status().code() == StatusCode::kNotFound) {
      // Not created, or gone meanwhile: retried at the next reconcile.
      const bool has_answer = refused.code() == StatusCode::kInternal;
      return {has_answer ? refused : Unavailable(Message(refused)), std::nullopt, std::nullopt};
    }
    if (object.ok() && !client::MetadataOf(*object).IsControlledBy(look.job.metadata.uid)) {
      return {OkStatus(), std::nullopt, HolderOf(client::MetadataOf(*object), clock_.Now())};
    }
    if (object.ok() && IsOfGang(wanted.kind) && client::MetadataOf(*object).terminating()) {
      return {Unavailable(client::ToString(key), " is still being deleted"), std::nullopt,
              std::nullopt};
    }
  }
  // Aborted is reserved for conflicts of the job's status; here a quota conflicted
  // with another write.
  if (object.status().code() == StatusCode::kAborted) {
    return {Unavailable(Message(object.status())), std::nullopt, std::nullopt};
  }
  if (!object.ok()) return {object.status(), std::nullopt, std::nullopt};
  return {OkStatus(), *std::move(object), std::nullopt, was_there};
}

Status Actor::Note(const Look& look, const render::DesiredObject& wanted, const policy::Gang& gang,
                   CreateResult result, std::vector<Child>& created, Memory& memory) {
  if (result.status.code() == StatusCode::kFailedPrecondition) {
    return NotFound(Message(result.status));  // the namespace is being deleted: treated as gone
  }
  const bool of_gang = IsOfGang(wanted.kind);
  if (result.holder && of_gang) {
    result.status = InvalidArgument(Name(wanted.kind), " ", wanted.name, " belongs to ",
                                    result.holder->holder, ", not to this job");
  }
  const bool unknown_kind = of_gang && result.status.code() == StatusCode::kNotFound;
  if (unknown_kind) result.status = FailedPrecondition(Message(result.status));
  auto& blocked =
      wanted.kind == Kind::kPod ? memory.history.blocked_pods : memory.history.blocked_services;
  if (!result.status.ok()) {
    observer_.OnCreateFailed(wanted.kind, look.job.metadata.name_space);
    if (IsRefusal(result.status) || unknown_kind) {
      if (memory.history.refusal.empty()) {
        memory.history.refusal = std::string(Message(result.status));
      }
      TellOnce(CreateFailedEvent(look.job, wanted.kind, result.status), memory);
    }
    return Annotate(result.status, StrCat("creating ", Name(wanted.kind), " ", wanted.name));
  }
  if (result.holder) {
    blocked[wanted.name] = *std::move(result.holder);
    memory.look_again = true;
    return OkStatus();
  }
  blocked.erase(wanted.name);
  // Something could be created, so what is refused from now on is news.
  std::erase_if(memory.history.reported, IsCreateFailed);
  const Child child = {wanted.name, client::MetadataOf(*result.object).uid};
  if (result.was_there) {
    memory.events.push_back(CreatedEvent(look.job, wanted.kind, {child}));
  } else {
    created.push_back(child);
  }
  cache_.Created(look.key, wanted.kind, *result.object);
  if (IsAloneAgainstOurWill(*result.object, gang)) {
    TellOnce(SchedulingGroupDroppedEvent(look.job, wanted.name), memory);
  }
  observer_.OnCreated(wanted.kind, look.job.metadata.name_space);
  return OkStatus();
}

Status Actor::WriteStatus(const Look& look, const Decision& decision, Memory& memory) {
  const Json& wanted = *decision.plan.status;
  StatusOr<client::Object> written = client_.UpdateStatus(Kind::kTFJob, wanted);
  if (written.ok()) {
    cache_.Wrote(look.key, look.job.metadata.resource_version,
                 std::get<std::shared_ptr<const objects::CustomResource>>(*written));
    observer_.OnStatus(look.job.metadata, look.job.status, decision.verdict.status, clock_.Now());
    return OkStatus();
  }
  // The conflict may be with our own write: a request whose connection broke is sent again.
  if (IsUnanswered(written.status()) || written.status().code() == StatusCode::kAborted) {
    memory.unanswered = {PrintJson(wanted["status"]), decision.plan.events, look.job.status,
                         decision.verdict.status};
  }
  return Annotate(written.status(), StrCat("writing the status of TFJob ", look.key));
}

Status Actor::DeleteAll(const Look& look, const plan::Plan& plan, Memory& memory) {
  const size_t count = std::min(plan.deletes.size(), kMaxDeletes);
  memory.look_again |= count < plan.deletes.size();
  std::vector<Status> results(count);
  pool_.ParallelFor(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) results[i] = DeleteOne(look, plan.deletes[i]);
  });
  Status first;
  std::vector<std::pair<Kind, std::vector<Child>>> deleted;  // kinds of one name together
  for (size_t i = 0; i < count; ++i) {
    const plan::Delete& wanted = plan.deletes[i];
    if (results[i].ok()) {
      if (deleted.empty() || Name(deleted.back().first) != Name(wanted.kind)) {
        deleted.push_back({wanted.kind, {}});
      }
      deleted.back().second.push_back({wanted.name, wanted.uid});
    }
    Keep(first, NoteDeleted(look, wanted, results[i], memory));
  }
  for (const auto& [kind, children] : deleted) {
    memory.events.push_back(DeletedEvent(look.job, kind, children));
  }
  return first;
}

Status Actor::DeleteOne(const Look& look, const plan::Delete& wanted) {
  const client::Key key{wanted.kind, look.job.metadata.name_space, wanted.name};
  client::DeleteOptions options;
  options.uid = wanted.uid;
  options.grace_period_seconds = wanted.grace_period_seconds;
  const Status status = client_.Delete(key, options);
  if (status.code() != StatusCode::kAborted) return status;
  // Another object has the name by now, or the server met a conflict with another write.
  const StatusOr<client::Object> found = Find(key);
  if (!found.ok()) return found.status();
  if (client::MetadataOf(*found).uid != wanted.uid) return NotFound(Message(status));
  return Unavailable(Message(status));
}

Status Actor::NoteDeleted(const Look& look, const plan::Delete& wanted, const Status& status,
                          Memory& memory) {
  if (status.code() == StatusCode::kNotFound) {
    cache_.Gone(look.key, wanted.uid);
    return OkStatus();
  }
  if (!status.ok()) {
    if (IsRefusal(status))
      TellOnce(DeleteFailedEvent(look.job, wanted.kind, wanted.uid, status), memory);
    return Annotate(status, StrCat("deleting ", wanted.name));
  }
  observer_.OnDeleted(wanted.kind, look.job.metadata.name_space);
  if (wanted.kind == Kind::kPod && wanted.grace_period_seconds != 0) {
    // The server's answer does not contain the grace period; the watch will show it.
    cache_.Deleted(look.key, wanted.uid,
                   {TruncateToSeconds(clock_.Now()), wanted.grace_period_seconds.value_or(30)});
  } else {
    cache_.Gone(look.key, wanted.uid);
  }
  return OkStatus();
}

void Actor::SendEvents(Memory& memory) {
  if (memory.events.empty()) return;
  std::vector<plan::NamedEvent> events = std::exchange(memory.events, {});
  if (record_) {
    for (plan::NamedEvent& event : events) {
      if (event.standing) memory.history.reported.insert(event.cause);
      record_(std::move(event.name), std::move(event.event));
    }
    return;
  }
  std::vector<Status> results(events.size());
  const Time now = clock_.Now();
  pool_.ParallelFor(static_cast<int64_t>(events.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Json event = objects::ToJson(events[i].event, now);
      event["metadata"]["name"] = events[i].name;
      results[i] = client_.Create(Kind::kEvent, event).status();
    }
  });
  for (size_t i = 0; i < events.size(); ++i) {
    // The name is derived from the cause, so a taken name means that the event was sent before.
    if (results[i].ok() || results[i].code() == StatusCode::kAlreadyExists) {
      if (events[i].standing) memory.history.reported.insert(events[i].cause);
    } else if (IsPassing(results[i])) {
      kLog.Debug("event not sent yet", {{"event", events[i].event.message}, {"error", results[i]}});
      if (memory.events.size() < kMaxEventsKept) memory.events.push_back(std::move(events[i]));
    } else if (results[i].code() != StatusCode::kFailedPrecondition) {  // namespace terminating
      kLog.Warning("event refused", {{"event", events[i].event.message}, {"error", results[i]}});
    }
  }
}

}  // namespace tfjob::control
