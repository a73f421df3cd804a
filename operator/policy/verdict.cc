#include "operator/policy/verdict.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "operator/api/status_json.h"
#include "runtime/base/fnv1a.h"

namespace tfjob::policy {
namespace {

Json ToJson(const PodToCreate& pod) {
  return {{"name", pod.name}, {"attempt", pod.attempt}};
}

Json ToJson(const PodThatWaits& pod) {
  Json json = {{"name", pod.name}, {"why", pod.why}};
  if (pod.not_before) json["notBefore"] = FormatMicroTime(*pod.not_before);
  return json;
}

Json ToJson(const PodToDelete& pod) {
  Json json = {{"name", pod.name}, {"uid", pod.uid}, {"why", Name(pod.reason)}};
  if (pod.grace_period_seconds) json["gracePeriodSeconds"] = *pod.grace_period_seconds;
  return json;
}

Json ToJson(const ServiceToCreate& service) {
  return service.name;
}

Json ToJson(const ServiceRef& service) {
  return {{"name", service.name}, {"uid", service.uid}};
}

Json ToJson(const PodGroupSpec& spec) {
  Json json = {{"minMember", spec.min_member}};
  if (!spec.queue.empty()) json["queue"] = spec.queue;
  if (!spec.priority_class.empty()) json["priorityClassName"] = spec.priority_class;
  if (!spec.min_resources.empty()) json["minResources"] = spec.min_resources;
  if (spec.schedule_timeout_seconds) {
    json["scheduleTimeoutSeconds"] = *spec.schedule_timeout_seconds;
  }
  return json;
}

Json ToJson(const PodGroupRef& group) {
  return {{"scheduler", Name(group.scheduler)}, {"name", group.name}, {"uid", group.uid}};
}

Json ToJson(const WorkloadRef& workload) {
  return {{"name", workload.name}, {"uid", workload.uid}};
}

Json ToJson(const NetworkPolicySpec& spec) {
  return {{"ports", spec.ports}};
}

Json ToJson(const NetworkPolicyRef& policy) {
  return {{"name", policy.name}, {"uid", policy.uid}};
}

Json ToJson(const JobEvent& event) {
  return {{"type", objects::Name(event.type)},
          {"reason", event.reason},
          {"message", event.message},
          {"cause", event.cause}};
}

template <typename Value>
void SetList(const char* key, const std::vector<Value>& values, Json& json) {
  if (values.empty()) return;
  Json& list = json[key] = Json::array();
  for (const Value& value : values) list.push_back(ToJson(value));
}

void SetNetworkPolicy(const Verdict& verdict, Json& json) {
  if (const auto& created = verdict.create_network_policy) {
    json["createNetworkPolicy"] = ToJson(*created);
  }
  if (const auto& changed = verdict.change_network_policy) {
    json["changeNetworkPolicy"] = ToJson(changed->spec);
  }
  if (const auto& deleted = verdict.delete_network_policy) {
    json["deleteNetworkPolicy"] = ToJson(*deleted);
  }
}

}  // namespace

std::string_view Name(Stage stage) {
  switch (stage) {
    case Stage::kIgnored:
      return "Ignored";
    case Stage::kSuspended:
      return "Suspended";
    case Stage::kRunning:
      return "Running";
    case Stage::kEnded:
      return "Ended";
  }
  return "";
}

std::string_view Name(DeleteReason reason) {
  switch (reason) {
    case DeleteReason::kRestart:
      return "Restart";
    case DeleteReason::kNewAttempt:
      return "NewAttempt";
    case DeleteReason::kScaleDown:
      return "ScaleDown";
    case DeleteReason::kSuspend:
      return "Suspend";
    case DeleteReason::kCleanUp:
      return "CleanUp";
    case DeleteReason::kLostNode:
      return "LostNode";
  }
  return "";
}

std::string EventName(const api::TFJob& job, std::string_view cause) {
  const uint64_t hash = Fnv1a().Add(job.metadata.uid).Add(cause).hash();
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return StrCat(job.metadata.name, ".", digits);
}

Json Print(const Verdict& verdict) {
  Json json = {{"stage", Name(verdict.stage)}, {"status", api::StatusToJson(verdict.status)}};
  if (verdict.create_workload) json["createWorkload"] = ToJson(*verdict.create_workload);
  if (verdict.create_pod_group) json["createPodGroup"] = ToJson(*verdict.create_pod_group);
  if (verdict.change_pod_group) json["changePodGroup"] = ToJson(verdict.change_pod_group->spec);
  SetList("deletePodGroups", verdict.delete_pod_groups, json);
  SetList("deleteWorkloads", verdict.delete_workloads, json);
  SetNetworkPolicy(verdict, json);
  SetList("createServices", verdict.create_services, json);
  SetList("adoptServices", verdict.adopt_services, json);
  SetList("deleteServices", verdict.delete_services, json);
  SetList("createPods", verdict.create_pods, json);
  if (!verdict.key_id.empty()) json["keyId"] = verdict.key_id;
  SetList("waitingPods", verdict.waiting_pods, json);
  SetList("deletePods", verdict.delete_pods, json);
  SetList("events", verdict.events, json);
  if (verdict.delete_job) json["deleteJob"] = true;
  if (verdict.requeue_after) json["requeueAfter"] = FormatDuration(*verdict.requeue_after);
  return json;
}

}  // namespace tfjob::policy
