#include "operator/plan/plan.h"

#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/api/reasons.h"
#include "operator/api/status_json.h"
#include "operator/render/pod_group.h"

namespace tfjob::plan {
namespace {

// Prefix of the causes of events about refused creates.
constexpr std::string_view kCreateFailed = "create-failed/";

objects::ObjectReference ReferenceTo(const api::TFJob& job) {
  objects::ObjectReference reference;
  reference.api_version = api::kApiVersion;
  reference.kind = api::kKind;
  reference.name_space = job.metadata.name_space;
  reference.name = job.metadata.name;
  reference.uid = job.metadata.uid;
  reference.resource_version = job.metadata.resource_version;
  return reference;
}

NamedEvent MakeEvent(const api::TFJob& job, objects::EventType type, std::string reason,
                     std::string message, std::string cause, bool standing = false) {
  NamedEvent event;
  event.name = policy::EventName(job, cause);
  event.event = {ReferenceTo(job), type, std::move(reason), std::move(message)};
  event.cause = std::move(cause);
  event.standing = standing;
  return event;
}

// A merge patch replaces a list as a whole, so owners that are not controllers are kept in it. The
// UID is a precondition.
Adopt MakeAdopt(const api::TFJob& job, const policy::ServiceRef& service,
                const policy::Snapshot& snapshot) {
  objects::ObjectMeta metadata;
  metadata.uid = service.uid;
  for (const auto& orphan : snapshot.orphan_services) {
    if (orphan->metadata.uid == service.uid) {
      metadata.owner_references = orphan->metadata.owner_references;
    }
  }
  metadata.owner_references.push_back(api::OwnerReferenceOf(job));
  return {service.name,
          std::make_shared<const Json>(Json{{"metadata", objects::ToJson(metadata)}})};
}

// Contains everything that identifies the job; the status subresource ignores the rest.
std::shared_ptr<const Json> StatusUpdate(const api::TFJob& job, const api::TFJobStatus& status) {
  objects::ObjectMeta metadata;
  metadata.name = job.metadata.name;
  metadata.name_space = job.metadata.name_space;
  metadata.uid = job.metadata.uid;
  metadata.resource_version = job.metadata.resource_version;
  return std::make_shared<const Json>(Json{{"apiVersion", api::kApiVersion},
                                           {"kind", api::kKind},
                                           {"metadata", objects::ToJson(metadata)},
                                           {"status", api::StatusToJson(status)}});
}

// A resume is acknowledged before anything is created: next to a status that says Suspended, new
// pods would be taken for those from before.
bool IsResumed(const api::TFJobStatus& before, const api::TFJobStatus& after) {
  return api::IsTrue(before, api::ConditionType::kSuspended) &&
         !api::IsTrue(after, api::ConditionType::kSuspended);
}

std::vector<Delete> MakeDeletes(const api::TFJob& job, const policy::Verdict& verdict) {
  std::vector<Delete> deletes;
  for (const policy::PodToDelete& pod : verdict.delete_pods) {
    deletes.push_back({DeleteKind::kPod, pod.name, pod.uid, pod.grace_period_seconds});
  }
  for (const policy::ServiceRef& service : verdict.delete_services) {
    deletes.push_back({DeleteKind::kService, service.name, service.uid, std::nullopt});
  }
  for (const policy::PodGroupRef& group : verdict.delete_pod_groups) {
    deletes.push_back(
        {DeleteKind::kPodGroup, group.name, group.uid, std::nullopt, group.scheduler});
  }
  for (const policy::WorkloadRef& workload : verdict.delete_workloads) {
    deletes.push_back({DeleteKind::kWorkload, workload.name, workload.uid, std::nullopt});
  }
  if (verdict.delete_job) {
    deletes.push_back({DeleteKind::kJob, job.metadata.name, job.metadata.uid, std::nullopt});
  }
  return deletes;
}

std::string_view Name(DeleteKind kind) {
  switch (kind) {
    case DeleteKind::kPod:
      return "Pod";
    case DeleteKind::kService:
      return "Service";
    case DeleteKind::kPodGroup:
      return "PodGroup";
    case DeleteKind::kWorkload:
      return "Workload";
    case DeleteKind::kJob:
      return api::kKind;
  }
  return "";
}

// The words of the events about one kind of object.
struct Words {
  const char* what;
  const char* created;
  const char* create_failed;
  const char* deleted;
  const char* delete_failed;
};

api::Names NamesOf(const std::vector<Child>& children) {
  api::Names names;
  for (const Child& child : children) names.push_back(child.name);
  return names;
}

std::string CauseOf(std::string cause, const std::vector<Child>& children) {
  for (const Child& child : children) cause += StrCat("/", child.uid);
  return cause;
}

const Words& WordsOf(DeleteKind kind) {
  static constexpr Words kPod = {"pod", api::kReasonCreatedPod, api::kReasonFailedCreatePod,
                                 api::kReasonDeletedPod, api::kReasonFailedDeletePod};
  static constexpr Words kService = {"service", api::kReasonCreatedService,
                                     api::kReasonFailedCreateService, api::kReasonDeletedService,
                                     api::kReasonFailedDeleteService};
  static constexpr Words kPodGroup = {"pod group", api::kReasonCreatedPodGroup,
                                      api::kReasonFailedCreatePodGroup, api::kReasonDeletedPodGroup,
                                      api::kReasonFailedDeletePodGroup};
  static constexpr Words kWorkload = {"workload", api::kReasonCreatedWorkload,
                                      api::kReasonFailedCreateWorkload, api::kReasonDeletedWorkload,
                                      api::kReasonFailedDeleteWorkload};
  static constexpr Words kJob = {"job", "", "", api::kReasonDeletedJob,
                                 api::kReasonFailedDeleteJob};
  switch (kind) {
    case DeleteKind::kPod:
      return kPod;
    case DeleteKind::kService:
      return kService;
    case DeleteKind::kPodGroup:
      return kPodGroup;
    case DeleteKind::kWorkload:
      return kWorkload;
    case DeleteKind::kJob:
      return kJob;
  }
  return kPod;
}

const Words& WordsOf(render::Kind kind) {
  switch (kind) {
    case render::Kind::kWorkload:
      return WordsOf(DeleteKind::kWorkload);
    case render::Kind::kPodGroup:
      return WordsOf(DeleteKind::kPodGroup);
    case render::Kind::kService:
      return WordsOf(DeleteKind::kService);
    case render::Kind::kPod:
      return WordsOf(DeleteKind::kPod);
  }
  return WordsOf(DeleteKind::kPod);
}

// Replaces numbers, such as "pods=5" of a quota, an index or a port: they change from try to try,
// while the problem stays the same.
std::string WithoutNumbers(std::string_view text) {
  std::string shape;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) shape += c;
    if (is_digit && (shape.empty() || shape.back() != '#')) shape += '#';
  }
  return shape;
}

}  // namespace

bool Plan::empty() const {
  return adopts.empty() && !change_pod_group && creates.empty() && status == nullptr &&
         deletes.empty() && events.empty();
}

Plan MakePlan(const api::TFJob& job, const policy::Verdict& verdict, const render::Desired& desired,
              const policy::Snapshot& snapshot) {
  Plan plan;
  for (const policy::ServiceRef& service : verdict.adopt_services) {
    plan.adopts.push_back(MakeAdopt(job, service, snapshot));
  }
  if (const auto& change = verdict.change_pod_group) {
    plan.change_pod_group = {change->group.scheduler, change->group.name,
                             std::make_shared<const Json>(render::PatchPodGroup(
                                 verdict.gang, change->spec, change->group.uid))};
  }
  plan.creates = desired.objects();
  if (verdict.status != job.status) plan.status = StatusUpdate(job, verdict.status);
  plan.deletes = MakeDeletes(job, verdict);
  for (const policy::Event& event : verdict.events) {
    plan.events.push_back(
        MakeEvent(job, event.type, event.reason, event.message, event.cause, event.standing));
  }
  plan.requeue_after = verdict.requeue_after;
  if (IsResumed(job.status, verdict.status)) {
    plan.creates.clear();
    plan.change_pod_group.reset();
    plan.requeue_after = Duration(0);
  }
  return plan;
}

NamedEvent Created(const api::TFJob& job, render::Kind kind, const std::vector<Child>& children) {
  const Words& words = WordsOf(kind);
  return MakeEvent(job, objects::EventType::kNormal, words.created,
                   api::CreatedObjectsMessage(words.what, NamesOf(children)),
                   CauseOf("created", children));
}

NamedEvent CreateFailed(const api::TFJob& job, render::Kind kind, const Status& error) {
  const char* reason = WordsOf(kind).create_failed;
  const std::string cause = StrCat(kCreateFailed, reason, "/");
  NamedEvent event =
      MakeEvent(job, objects::EventType::kWarning, reason, api::FailedCreateMessage(Message(error)),
                StrCat(cause, Message(error)), true);
  event.cause = StrCat(cause, WithoutNumbers(Message(error)));
  return event;
}

NamedEvent ChangeFailed(const api::TFJob& job, const Status& error) {
  const std::string cause = StrCat(kCreateFailed, "change-pod-group/");
  NamedEvent event =
      MakeEvent(job, objects::EventType::kWarning, api::kReasonFailedChangePodGroup,
                api::FailedChangeMessage(Message(error)), StrCat(cause, Message(error)), true);
  event.cause = StrCat(cause, WithoutNumbers(Message(error)));
  return event;
}

bool IsCreateFailed(std::string_view cause) {
  return cause.substr(0, kCreateFailed.size()) == kCreateFailed;
}

NamedEvent Deleted(const api::TFJob& job, DeleteKind kind, const std::vector<Child>& children) {
  const Words& words = WordsOf(kind);
  return MakeEvent(job, objects::EventType::kNormal, words.deleted,
                   api::DeletedObjectsMessage(words.what, NamesOf(children)),
                   CauseOf("deleted", children));
}

NamedEvent DeleteFailed(const api::TFJob& job, const Delete& failed, const Status& error) {
  return MakeEvent(job, objects::EventType::kWarning, WordsOf(failed.kind).delete_failed,
                   api::FailedDeleteMessage(Message(error)),
                   StrCat("delete-failed/", failed.uid, "/", Message(error)), true);
}

NamedEvent SchedulingGroupDropped(const api::TFJob& job, const std::string& pod) {
  return MakeEvent(job, objects::EventType::kWarning, api::kReasonSchedulingGroupDropped,
                   api::SchedulingGroupDroppedMessage(pod), "scheduling-group-dropped", true);
}

Json Print(const Plan& plan) {
  Json steps = Json::array();
  for (const Adopt& adopt : plan.adopts) {
    steps.push_back({{"adopt", StrCat("Service ", adopt.name)}, {"patch", *adopt.patch}});
  }
  if (plan.change_pod_group) {
    steps.push_back({{"change", StrCat("PodGroup ", plan.change_pod_group->name)},
                     {"patch", *plan.change_pod_group->patch}});
  }
  for (const render::DesiredObject& object : plan.creates) {
    steps.push_back({{"create", StrCat(render::Name(object.kind), " ", object.name)}});
  }
  if (plan.status != nullptr) steps.push_back({{"status", (*plan.status)["status"]}});
  for (const Delete& deleted : plan.deletes) {
    Json step = {{"delete", StrCat(Name(deleted.kind), " ", deleted.name)}, {"uid", deleted.uid}};
    if (deleted.grace_period_seconds) step["gracePeriodSeconds"] = *deleted.grace_period_seconds;
    steps.push_back(std::move(step));
  }
  for (const NamedEvent& event : plan.events) {
    steps.push_back({{"event", event.event.reason},
                     {"type", objects::Name(event.event.type)},
                     {"message", event.event.message},
                     {"name", event.name}});
  }
  Json json = {{"steps", std::move(steps)}};
  if (plan.requeue_after) json["requeueAfter"] = FormatDuration(*plan.requeue_after);
  return json;
}

}  // namespace tfjob::plan
