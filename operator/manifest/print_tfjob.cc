#include <nlohmann/json.hpp>

#include "operator/manifest/tfjob_json.h"

namespace tfjob::manifest {
namespace {

// Sets the member `key` only if there is a value.
template <typename T>
void Set(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

template <typename Container>
void SetUnlessEmpty(Json& json, const char* key, const Container& value) {
  if (!value.empty()) json[key] = value;
}

Json ToJson(const api::SchedulingPolicy& policy) {
  Json json = Json::object();
  Set(json, "minAvailable", policy.min_available);
  SetUnlessEmpty(json, "queue", policy.queue);
  SetUnlessEmpty(json, "minResources", policy.min_resources);
  SetUnlessEmpty(json, "priorityClass", policy.priority_class);
  Set(json, "scheduleTimeoutSeconds", policy.schedule_timeout_seconds);
  return json;
}

Json ToJson(const api::RunPolicy& policy) {
  Json json = Json::object();
  if (policy.clean_pod_policy) json["cleanPodPolicy"] = api::Name(*policy.clean_pod_policy);
  Set(json, "ttlSecondsAfterFinished", policy.ttl_seconds_after_finished);
  Set(json, "activeDeadlineSeconds", policy.active_deadline_seconds);
  Set(json, "backoffLimit", policy.backoff_limit);
  if (policy.scheduling_policy) json["schedulingPolicy"] = ToJson(*policy.scheduling_policy);
  if (policy.suspend) json["suspend"] = true;
  Set(json, "managedBy", policy.managed_by);
  if (policy.restart_scope != api::RestartScope::kReplica) {
    json["restartScope"] = api::Name(policy.restart_scope);
  }
  return json;
}

Json ToJson(const api::ReplicaSpec& spec) {
  Json json = {{"template", spec.pod_template ? *spec.pod_template : Json::object()}};
  Set(json, "replicas", spec.replicas);
  if (spec.restart_policy) json["restartPolicy"] = api::Name(*spec.restart_policy);
  return json;
}

Json ToJson(const api::TFJobSpec& spec) {
  Json json = {{"tfReplicaSpecs", Json::object()}};
  for (const auto& [type, replica_spec] : spec.replicas) {
    json["tfReplicaSpecs"][std::string(api::Name(type))] = ToJson(replica_spec);
  }
  SetUnlessEmpty(json, "runPolicy", ToJson(spec.run_policy));
  SetUnlessEmpty(json, "successPolicy", api::Name(spec.success_policy));
  if (spec.enable_dynamic_worker) json["enableDynamicWorker"] = true;
  return json;
}

}  // namespace

Json ToJson(const api::TFJob& job) {
  Json json = {{"apiVersion", api::kApiVersion},
               {"kind", api::kKind},
               {"metadata", objects::ToJson(job.metadata)},
               {"spec", ToJson(job.spec)}};
  SetUnlessEmpty(json, "status", StatusToJson(job.status));
  return json;
}

}  // namespace tfjob::manifest
