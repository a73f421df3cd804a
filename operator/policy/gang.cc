#include "operator/policy/gang.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/quantity.h"
#include "operator/api/replicas.h"
#include "operator/objects/custom_resource.h"
#include "operator/policy/native_gang.h"

namespace tfjob::policy {
namespace {

using api::ReplicaType;
using Totals = std::map<std::string, api::Quantity>;

constexpr char kDefaultQueue[] = "default";

std::string TextOf(const JsonField& field) {
  if (!field.present()) return "";
  return field.value()->is_string() ? field.String().value_or("") : PrintJson(*field.value());
}

// Adds the resources that `times` pods of the template request to `totals`. Skips invalid
// quantities, because the API server will reject them.
void AddRequests(const Json& pod_template, int64_t times, Totals& totals) {
  const Json* containers = api::Containers(pod_template);
  if (containers == nullptr) return;
  for (const Json& container : *containers) {
    const JsonField resources = JsonField(container)["resources"];
    const JsonField asked =
        resources["requests"].present() ? resources["requests"] : resources["limits"];
    const auto members = asked.Members();
    if (!members.ok()) continue;
    for (const auto& [name, field] : *members) {
      const auto quantity = api::ParseQuantity(TextOf(field));
      if (!quantity.ok()) continue;
      Totals::mapped_type& total = totals[name];
      total = total + api::Quantity{quantity->nanos * times, quantity->binary};
    }
  }
}

std::map<std::string, std::string> SumOfRequests(const api::TFJob& job, int64_t min_member) {
  Totals totals;
  int64_t left = min_member;
  for (const ReplicaType type : {ReplicaType::kChief, ReplicaType::kMaster, ReplicaType::kPS,
                                 ReplicaType::kWorker, ReplicaType::kEvaluator}) {
    const int64_t count = std::min<int64_t>(left, api::Replicas(job, type));
    if (count <= 0) continue;
    const auto& pod_template = job.spec.replicas.at(type).pod_template;
    if (pod_template != nullptr) AddRequests(*pod_template, count, totals);
    left -= count;
  }
  std::map<std::string, std::string> texts;
  for (const auto& [name, total] : totals) texts[name] = api::ToString(total);
  return texts;
}

// Compares quantities by value: the server may return "1000m" although the operator wrote "1".
bool SameResources(const JsonField& found, const std::map<std::string, std::string>& wanted) {
  const auto members = found.Members();
  if (!members.ok() || members->size() != wanted.size()) return false;
  return std::all_of(members->begin(), members->end(), [&](const auto& member) {
    const auto same = wanted.find(member.first);
    if (same == wanted.end()) return false;
    const std::string text = TextOf(member.second);
    if (text == same->second) return true;
    const auto a = api::ParseQuantity(text);
    const auto b = api::ParseQuantity(same->second);
    return a.ok() && b.ok() && *a == *b;
  });
}

bool IsAsWanted(const objects::CustomResource& group, const PodGroupSpec& wanted,
                const GangTraits& traits) {
  const JsonField spec = JsonField(*group.object)["spec"];
  if (spec["minMember"].IntOr(0).value_or(0) != wanted.min_member) return false;
  if (!SameResources(spec["minResources"], wanted.min_resources)) return false;
  if (traits.has_priority_class && TextOf(spec["priorityClassName"]) != wanted.priority_class) {
    return false;
  }
  return !wanted.schedule_timeout_seconds ||
         spec["scheduleTimeoutSeconds"].IntOr(0).value_or(0) == *wanted.schedule_timeout_seconds;
}

const PodGroup* FindGroup(const Snapshot& snapshot, GangScheduler scheduler) {
  for (const PodGroup& group : snapshot.pod_groups) {
    if (group.scheduler == scheduler && !group.object->metadata.terminating()) return &group;
  }
  return nullptr;
}

PodGroupRef ReferenceTo(const PodGroup& group) {
  return {group.scheduler, group.object->metadata.name, group.object->metadata.uid};
}

// Returns the gang that the annotation selects or, if it selects none, the gang that the flag
// selects.
Gang ChosenGang(const api::TFJob& job, const DecisionOptions& options) {
  const auto annotation = job.metadata.annotations.find(api::kGangSchedulerAnnotation);
  if (options.gang.enforced || annotation == job.metadata.annotations.end()) return options.gang;
  const GangTraits* traits = FindGangScheduler(annotation->second);
  if (traits == nullptr) return options.gang;  // api::Warnings reports it
  const bool flag_names_it = traits->has_any_name && options.gang.scheduler == traits->scheduler;
  return {traits->scheduler,
          flag_names_it ? options.gang.scheduler_name : std::string(traits->scheduler_name)};
}

}  // namespace

Gang GangOf(const api::TFJob& job, const DecisionOptions& options) {
  if (api::TotalReplicas(job) == 0) return {};
  Gang gang = ChosenGang(job, options);
  if (gang.scheduler == GangScheduler::kNative && !gang.enforced) {
    const std::string named = SchedulerOfTemplates(job);
    if (!named.empty()) gang.scheduler_name = named;
  }
  return gang;
}

std::string ObstacleOf(const Gang& gang, const Snapshot& snapshot) {
  return gang.scheduler == GangScheduler::kNative ? NativeObstacle(snapshot) : "";
}

PodGroupSpec WantedPodGroup(const api::TFJob& job, const Gang& gang) {
  static const api::SchedulingPolicy kNothing;
  const auto& given = job.spec.run_policy.scheduling_policy;
  const api::SchedulingPolicy& policy = given ? *given : kNothing;
  PodGroupSpec spec;
  spec.min_member = std::max<int64_t>(1, policy.min_available.value_or(api::TotalReplicas(job)));
  const GangTraits& traits = TraitsOf(gang.scheduler);
  if (traits.has_min_resources) {
    spec.min_resources =
        policy.min_resources.empty() ? SumOfRequests(job, spec.min_member) : policy.min_resources;
  }
  if (traits.has_queue) spec.queue = policy.queue.empty() ? kDefaultQueue : policy.queue;
  if (traits.has_priority_class) spec.priority_class = policy.priority_class;
  if (traits.has_schedule_timeout) {
    spec.schedule_timeout_seconds = policy.schedule_timeout_seconds;
  }
  return spec;
}

bool WaitsForQueue(const Gang& gang, const Snapshot& snapshot) {
  if (gang.scheduler == GangScheduler::kNative) return NativeMustWait(gang, snapshot);
  if (!TraitsOf(gang.scheduler).waits_for_admission) return false;
  const PodGroup* group = FindGroup(snapshot, gang.scheduler);
  if (group == nullptr) return true;
  const std::string phase = TextOf(JsonField(*group->object->object)["status"]["phase"]);
  return phase.empty() || phase == "Pending";
}

void WantPodGroup(Draft& draft) {
  const Gang& gang = draft.verdict.gang;
  for (const PodGroup& group : draft.snapshot.pod_groups) {
    if (group.scheduler == gang.scheduler || group.object->metadata.terminating()) continue;
    draft.verdict.delete_pod_groups.push_back(ReferenceTo(group));
  }
  if (!TraitsOf(gang.scheduler).has_workload) DropWorkloads(draft);
  if (gang.scheduler == GangScheduler::kNone) return;
  PodGroupSpec wanted = WantedPodGroup(draft.job, gang);
  if (gang.scheduler == GangScheduler::kNative) return WantNativeGroup(wanted, draft);
  const PodGroup* group = FindGroup(draft.snapshot, gang.scheduler);
  if (group == nullptr) {
    draft.verdict.create_pod_group = std::move(wanted);
  } else if (!IsAsWanted(*group->object, wanted, TraitsOf(gang.scheduler))) {
    draft.verdict.change_pod_group = PodGroupChange{ReferenceTo(*group), std::move(wanted)};
  }
}

void DropPodGroups(Draft& draft) {
  for (const PodGroup& group : draft.snapshot.pod_groups) {
    if (group.object->metadata.terminating()) continue;
    draft.verdict.delete_pod_groups.push_back(ReferenceTo(group));
  }
  DropWorkloads(draft);
}

}  // namespace tfjob::policy
