#include "operator/plan/plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/api/status_json.h"
#include "operator/objects/service.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"
#include "operator/render/network_policy.h"
#include "operator/render/pod_group.h"
#include "operator/render/render.h"
#include "runtime/base/check.h"

namespace tfjob::plan {
namespace {

using objects::Kind;

// Returns a patch that adds the job to the service's owners, with the service's UID as a
// precondition. A merge patch replaces the whole list, so the patch also contains the existing
// owners, none of which is a controller.
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

// Returns the object to send in the status write: the new status, and the fields that identify the
// job. The status subresource ignores all other fields.
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

// Returns whether the job is being resumed. The status must record this before any object is
// created; otherwise, the new pods would be mistaken for pods from before the suspension.
bool IsResumed(const api::TFJobStatus& before, const api::TFJobStatus& after) {
  return api::IsTrue(before, api::ConditionType::kSuspended) &&
         !api::IsTrue(after, api::ConditionType::kSuspended);
}

std::vector<Delete> MakeDeletes(const api::TFJob& job, const policy::Verdict& verdict) {
  std::vector<Delete> deletes;
  for (const policy::PodToDelete& pod : verdict.delete_pods) {
    deletes.push_back({Kind::kPod, pod.name, pod.uid, pod.grace_period_seconds});
  }
  for (const policy::ServiceRef& service : verdict.delete_services) {
    deletes.push_back({Kind::kService, service.name, service.uid, std::nullopt});
  }
  for (const policy::PodGroupRef& group : verdict.delete_pod_groups) {
    deletes.push_back(
        {policy::TraitsOf(group.scheduler).pod_group_kind, group.name, group.uid, std::nullopt});
  }
  for (const policy::WorkloadRef& workload : verdict.delete_workloads) {
    deletes.push_back({Kind::kWorkload, workload.name, workload.uid, std::nullopt});
  }
  if (const auto& dropped = verdict.delete_network_policy) {
    deletes.push_back({Kind::kNetworkPolicy, dropped->name, dropped->uid, std::nullopt});
  }
  if (verdict.delete_job) {
    deletes.push_back({Kind::kTFJob, job.metadata.name, job.metadata.uid, std::nullopt});
  }
  return deletes;
}

// Returns the snapshot's pod group that `group` refers to.
const objects::CustomResource& Find(const policy::Snapshot& snapshot,
                                    const policy::PodGroupRef& group) {
  const auto found =
      std::find_if(snapshot.pod_groups.begin(), snapshot.pod_groups.end(),
                   [&](const auto& each) { return each.object->metadata.uid == group.uid; });
  ENFORCE(found != snapshot.pod_groups.end(), "the verdict is based on another snapshot");
  return *found->object;
}

void PlanChanges(const api::TFJob& job, const policy::Verdict& verdict,
                 const policy::Snapshot& snapshot, Plan& plan) {
  if (const auto& change = verdict.change_pod_group) {
    plan.change_pod_group = {policy::TraitsOf(change->group.scheduler).pod_group_kind,
                             change->group.name,
                             std::make_shared<const Json>(render::PatchPodGroup(
                                 verdict.gang, change->spec, Find(snapshot, change->group)))};
  }
  if (const auto& change = verdict.change_network_policy) {
    ENFORCE(snapshot.network_policy != nullptr, "the verdict is based on another snapshot");
    plan.change_network_policy = {Kind::kNetworkPolicy, change->policy.name,
                                  std::make_shared<const Json>(render::PatchNetworkPolicy(
                                      *snapshot.network_policy, job.metadata.name, change->spec))};
  }
}

}  // namespace

bool Plan::empty() const {
  return adopts.empty() && !change_pod_group && !change_network_policy && creates.empty() &&
         status == nullptr && deletes.empty() && events.empty();
}

Plan MakePlan(const api::TFJob& job, const policy::Verdict& verdict, const render::Desired& desired,
              const policy::Snapshot& snapshot) {
  Plan plan;
  for (const policy::ServiceRef& service : verdict.adopt_services) {
    plan.adopts.push_back(MakeAdopt(job, service, snapshot));
  }
  PlanChanges(job, verdict, snapshot, plan);
  plan.creates = desired.objects();
  if (verdict.status != job.status) plan.status = StatusUpdate(job, verdict.status);
  plan.deletes = MakeDeletes(job, verdict);
  for (const policy::JobEvent& event : verdict.events) {
    plan.events.push_back(
        MakeEvent(job, event.type, event.reason, event.message, event.cause, event.standing));
  }
  plan.requeue_after = verdict.requeue_after;
  if (IsResumed(job.status, verdict.status)) {
    plan.creates.clear();
    plan.change_pod_group.reset();
    plan.change_network_policy.reset();
    plan.requeue_after = Duration(0);
  }
  return plan;
}

Json Print(const Plan& plan) {
  Json steps = Json::array();
  for (const Adopt& adopt : plan.adopts) {
    steps.push_back({{"adopt", StrCat("Service ", adopt.name)}, {"patch", *adopt.patch}});
  }
  for (const auto& change : {plan.change_pod_group, plan.change_network_policy}) {
    if (!change) continue;
    steps.push_back(
        {{"change", StrCat(Name(change->kind), " ", change->name)}, {"patch", *change->patch}});
  }
  for (const render::DesiredObject& object : plan.creates) {
    steps.push_back({{"create", StrCat(Name(object.kind), " ", object.name)}});
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
