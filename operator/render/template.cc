#include "operator/render/template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/objects/pod.h"
#include "operator/policy/facts/restart_policy.h"
#include "operator/render/key_scheme.h"
#include "operator/render/pod_group.h"
#include "runtime/cluster/address_pattern.h"

namespace tfjob::render {
namespace {

constexpr char kTcp[] = "TCP";
constexpr char kKeyVariable[] = "TFJOB_KEY";

StatusOr<size_t> FindContainer(const JsonField& containers) {
  ASSIGN_OR_RETURN(const auto elements, containers.Elements());
  for (size_t i = 0; i < elements.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string name, elements[i]["name"].StringOr(""));
    if (name == api::kContainerName) return i;
  }
  return InvalidArgument(containers.path(), ": one of the containers must be named \"",
                         api::kContainerName, "\"");
}

// Returns the name of a service port. If a service has several ports, each needs a name. A
// container port may have no name; in this case, creates one.
std::string PortName(const std::string& name, int32_t port, const std::string& protocol) {
  if (!name.empty()) return name;
  if (protocol == kTcp) return StrCat("port-", port);
  return StrCat("port-", port, "-", absl::AsciiStrToLower(protocol));
}

// Converts a container's ports to those of a service, in the same order. A port that is listed
// twice with the same protocol is included once.
StatusOr<Json> ServicePorts(const JsonField& container_ports) {
  Json ports = Json::array();
  std::set<std::pair<int32_t, std::string>> seen;
  ASSIGN_OR_RETURN(const auto elements, container_ports.Elements());
  for (const JsonField& field : elements) {
    ASSIGN_OR_RETURN(const int32_t port, field["containerPort"].Int32());
    ASSIGN_OR_RETURN(const std::string name, field["name"].StringOr(""));
    ASSIGN_OR_RETURN(const std::string protocol, field["protocol"].StringOr(kTcp));
    if (!seen.insert({port, protocol}).second) continue;
    Json entry = {{"name", PortName(name, port, protocol)}, {"port", port}};
    if (protocol != kTcp) entry["protocol"] = protocol;
    ports.push_back(std::move(entry));
  }
  return ports;
}

// Returns a copy of `shared` with the labels, annotations and finalizers of the template.
StatusOr<objects::ObjectMeta> PodMetadata(const objects::ObjectMeta& shared,
                                          const JsonField& template_metadata) {
  objects::ObjectMeta metadata = shared;
  if (!template_metadata.present()) return metadata;
  ASSIGN_OR_RETURN(objects::ObjectMeta of_template, objects::ParseObjectMeta(template_metadata));
  metadata.labels = std::move(of_template.labels);
  metadata.annotations = std::move(of_template.annotations);
  metadata.finalizers = std::move(of_template.finalizers);
  return metadata;
}

void AddVariable(const char* name, std::string value, Json& env) {
  env.push_back({{"name", name}, {"value", std::move(value)}});
}

// Returns the list with this name in `object`; nullptr if there is no such list.
Json* FindList(Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

void HideKeysOf(Json& container) {
  Json* const env = FindList(container, "env");
  if (env == nullptr) return;
  for (Json& variable : *env) {
    if (!variable.is_object() || variable.value("name", Json()) != kKeyVariable) continue;
    if (variable.contains("value")) variable["value"] = kShownKey;
  }
}

// Returns the value of TFJOB_GRACE_PERIOD_SECONDS; "" if the template sets no grace period, because
// programs then use Kubernetes' default of 30 s. Also returns "" if the value is not a whole
// number, because the API server will reject it.
std::string GracePeriod(const Json& spec) {
  const auto found = spec.find("terminationGracePeriodSeconds");
  if (found == spec.end() || !found->is_number_integer()) return "";
  return StrCat(std::max<int64_t>(found->get<int64_t>(), 0));
}

}  // namespace

StatusOr<Template> Template::Create(const api::TFJob& job, api::ReplicaType type,
                                    const policy::Gang& gang) {
  const auto found = job.spec.replicas.find(type);
  const std::string path = StrCat("spec.tfReplicaSpecs.", api::Name(type), ".template");
  if (found == job.spec.replicas.end() || found->second.pod_template == nullptr) {
    return InvalidArgument(path, ": a pod template is required");
  }
  const JsonField root(*found->second.pod_template, path);
  const JsonField containers = root["spec"]["containers"];
  Template result;
  result.job_name_ = job.metadata.name;
  result.metadata_.name_space = job.metadata.name_space;
  result.metadata_.owner_references = {api::OwnerReferenceOf(job)};
  ASSIGN_OR_RETURN(result.pod_metadata_, PodMetadata(result.metadata_, root["metadata"]));
  ASSIGN_OR_RETURN(result.container_, FindContainer(containers));
  const JsonField container = containers[result.container_];
  const JsonField env = container["env"];
  if (env.present() && !env.value()->is_array()) return env.Mismatch("a list");
  ASSIGN_OR_RETURN(Json ports, ServicePorts(container["ports"]));
  result.ports_ = std::make_shared<const Json>(std::move(ports));

  Json spec = *root["spec"].value();
  spec["restartPolicy"] =
      api::Name(policy::BehaviorOf(api::EffectiveRestartPolicy(found->second)).pod_policy);
  if (gang.scheduler != policy::GangScheduler::kNone) {
    JoinPodGroup(gang, job.metadata.name, std::string(api::LowerName(type)), result.pod_metadata_,
                 spec);
    Json& scheduler = spec["schedulerName"];
    if (gang.enforced || scheduler.is_null() || scheduler == "") scheduler = gang.scheduler_name;
  }
  result.grace_period_ = GracePeriod(spec);
  Json& variables = spec["containers"][result.container_]["env"];
  if (variables.is_null()) variables = Json::array();
  result.pod_spec_ = std::make_shared<const Json>(std::move(spec));
  return result;
}

Json Template::Pod(const policy::Slot& slot, bool master_role,
                   const PodEnvironment& environment) const {
  objects::ObjectMeta metadata = pod_metadata_;
  metadata.name = api::ReplicaName(job_name_, slot.type, slot.index);
  // The operator's labels override the template's labels.
  api::Labels labels = api::ReplicaLabels(job_name_, slot.type, slot.index);
  labels[api::kAttemptLabel] = StrCat(environment.attempt);
  if (master_role) labels[api::kJobRoleLabel] = api::kMasterRole;
  for (const auto& [key, value] : metadata.labels) labels.emplace(key, value);
  metadata.labels = labels;
  // A template must not set the id of the pod's key.
  metadata.annotations.erase(objects::kKeyIdAnnotation);
  if (!environment.key_id.empty())
    metadata.annotations[objects::kKeyIdAnnotation] = environment.key_id;

  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", objects::ToJson(metadata)}};
  Json& spec = pod["spec"] = *pod_spec_;
  Json& env = spec["containers"][container_]["env"];
  if (!environment.key.empty()) AddVariable(kKeyVariable, environment.key, env);
  AddVariable("TFJOB_UID", environment.job_uid, env);
  AddVariable("TFJOB_ATTEMPT", StrCat(environment.attempt), env);
  if (!grace_period_.empty()) AddVariable("TFJOB_GRACE_PERIOD_SECONDS", grace_period_, env);
  if (!environment.chief.empty()) AddVariable("TFJOB_CHIEF", environment.chief, env);
  if (!environment.addresses.empty())
    AddVariable(cluster::kAddressPatternsVariable, environment.addresses, env);
  if (!environment.tf_config.empty()) AddVariable("TF_CONFIG", environment.tf_config, env);
  return pod;
}

Json Template::Service(const policy::Slot& slot) const {
  objects::ObjectMeta metadata = metadata_;
  metadata.name = api::ReplicaName(job_name_, slot.type, slot.index);
  const api::Labels labels = api::ReplicaLabels(job_name_, slot.type, slot.index);
  metadata.labels = labels;
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", objects::ToJson(metadata)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", labels},
            {"ports", *ports_}}}};
}

Json HideKeys(Json object) {
  if (!object.is_object() || !object.contains("spec")) return object;
  for (const char* list : {"initContainers", "containers"}) {
    Json* const containers = FindList(object["spec"], list);
    if (containers == nullptr) continue;
    for (Json& container : *containers) HideKeysOf(container);
  }
  return object;
}

}  // namespace tfjob::render
