#include "operator/render/render.h"

#include <map>
#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/verdict.h"
#include "operator/render/cluster_spec.h"
#include "operator/render/native_group.h"
#include "operator/render/network_policy.h"
#include "operator/render/pod_group.h"
#include "operator/render/template.h"
#include "operator/render/tf_config_size.h"

namespace tfjob::render {

using objects::Kind;

namespace {

// The largest number of replicas for which TF_CONFIG is never too long, even if every address has
// the maximum length: two DNS labels of 63 characters, a domain of 253 characters and a port.
constexpr int64_t kSurelyFit = 300;

// Returns the objects that the verdict creates, in the order of creation.
std::vector<DesiredObject> ObjectsOf(const api::TFJob& job, const policy::Verdict& verdict) {
  const std::string& name = job.metadata.name;
  std::vector<DesiredObject> objects;
  if (verdict.create_workload) objects.push_back({Kind::kWorkload, {}, name});
  if (verdict.create_pod_group) {
    objects.push_back({policy::TraitsOf(verdict.gang.scheduler).pod_group_kind, {}, name});
  }
  if (verdict.create_network_policy) {
    objects.push_back({Kind::kNetworkPolicy, {}, api::NetworkPolicyName(name)});
  }
  for (const policy::ServiceToCreate& service : verdict.create_services) {
    objects.push_back({Kind::kService, service.slot, service.name});
  }
  for (const policy::PodToCreate& pod : verdict.create_pods) {
    const bool master = api::IsMasterRole(job, pod.slot.type, pod.slot.index);
    objects.push_back({Kind::kPod, pod.slot, pod.name, pod.attempt, master});
  }
  return objects;
}

}  // namespace

struct Desired::Shared {
  std::string job_uid;
  std::string key_id, key;  // both "" if the pods get no key
  Json workload;
  Json pod_group;
  Json network_policy;
  std::map<api::ReplicaType, Template> templates;
  std::optional<ClusterSpec> cluster;  // set if a pod needs TF_CONFIG
};

Json Desired::Build(const DesiredObject& object) const {
  if (object.kind == Kind::kWorkload) return shared_->workload;
  if (objects::IsPodGroup(object.kind)) return shared_->pod_group;
  if (object.kind == Kind::kNetworkPolicy) return shared_->network_policy;
  const Template& parts = shared_->templates.at(object.slot.type);
  if (object.kind == Kind::kService) return parts.Service(object.slot);
  PodEnvironment environment{.key_id = shared_->key_id,
                             .key = shared_->key,
                             .job_uid = shared_->job_uid,
                             .attempt = object.attempt};
  if (shared_->cluster) {
    environment.chief = shared_->cluster->ChiefType();
    environment.addresses = shared_->cluster->AddressPatterns();
    environment.tf_config = shared_->cluster->TfConfigOf(object.slot);
  }
  return parts.Pod(object.slot, object.master, environment);
}

std::vector<Json> Desired::ShowAll() const {
  std::vector<Json> shown;
  shown.reserve(objects_.size());
  for (const DesiredObject& object : objects_) shown.push_back(HideKeys(Build(object)));
  return shown;
}

StatusOr<Desired> Render(const api::TFJob& job, const policy::Verdict& verdict,
                         const AddressScheme& address, const KeyScheme& key) {
  Desired desired;
  desired.objects_ = ObjectsOf(job, verdict);
  if (desired.objects_.empty()) return desired;

  auto shared = std::make_shared<Desired::Shared>();
  const bool has_cluster = !api::IsLocal(job);
  if (has_cluster && (!verdict.create_pods.empty() || api::TotalReplicas(job) > kSurelyFit)) {
    shared->cluster.emplace(job, address);
    RETURN_IF_ERROR(CheckTfConfigSize(job, *shared->cluster, address));
  }
  shared->job_uid = job.metadata.uid;
  if (key && !verdict.key_id.empty()) shared->key = key(job, verdict.key_id);
  if (!shared->key.empty()) shared->key_id = verdict.key_id;
  if (verdict.create_workload) {
    shared->workload = BuildWorkload(job, verdict.gang.native_version, *verdict.create_workload);
  }
  if (verdict.create_pod_group) {
    shared->pod_group = BuildPodGroup(job, verdict.gang, *verdict.create_pod_group);
  }
  if (verdict.create_network_policy) {
    shared->network_policy = BuildNetworkPolicy(job, *verdict.create_network_policy);
  }
  for (const DesiredObject& object : desired.objects_) {
    const api::ReplicaType type = object.slot.type;
    const bool has_template = object.kind == Kind::kService || object.kind == Kind::kPod;
    if (!has_template || shared->templates.contains(type)) continue;
    ASSIGN_OR_RETURN(Template parts, Template::Create(job, type, verdict.gang));
    shared->templates.emplace(type, std::move(parts));
  }
  desired.shared_ = std::move(shared);
  return desired;
}

}  // namespace tfjob::render
