#include "operator/local/run/local_cluster.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/control/manager.h"
#include "operator/keys/job_key.h"
#include "operator/keys/key_ring.h"
#include "operator/local/process/runner.h"
#include "operator/local/run/workload.h"
#include "operator/local/store/store.h"
#include "operator/view/training_slot.h"
#include "runtime/base/env.h"
#include "runtime/wire/loopback_ports.h"

namespace tfjob::local {
namespace {

// Returns a function that provides the variable TFJOB_ADDRESS for the pod of a job with a single
// task: the address at which the trainer must serve its progress. Such a job has no TF_CONFIG from
// which the trainer could read the address.
std::function<process::Variables(const objects::ObjectMeta&)> LoneAddresses(
    const Workload& workload, const render::AddressScheme& address) {
  std::map<std::string, std::string> addresses;  // by namespace/job
  for (const Workload::Job& job : workload.jobs) {
    if (const auto slot = view::TrainingSlot(job.job); slot && api::IsLocal(job.job)) {
      addresses[job.job.key()] = address(job.job, slot->type)(slot->index);
    }
  }
  return [addresses](const objects::ObjectMeta& pod) -> process::Variables {
    const auto found = addresses.find(StrCat(pod.name_space, "/", pod.label(api::kJobNameLabel)));
    if (found == addresses.end()) return {};
    return {{"TFJOB_ADDRESS", found->second}};
  };
}

// Returns a key ring with one random key, which is used only in this run.
StatusOr<std::shared_ptr<const keys::KeyRing>> KeyOfThisRun() {
  ASSIGN_OR_RETURN(const std::string secret, keys::RandomSecret());
  auto ring = std::make_shared<keys::KeyRing>();
  RETURN_IF_ERROR(ring->Add("run", secret));
  return ring;
}

}  // namespace

// Contains the parts of the cluster. Each part may use those declared before it.
struct LocalCluster::Parts {
  wire::LoopbackPorts ports;
  render::AddressScheme address;
  store::Store store{{.node_name = HostName(), .uid_prefix = store::RandomUidPrefix()}};
  std::unique_ptr<process::Runner> runner;
  std::unique_ptr<control::Manager> manager;
};

LocalCluster::LocalCluster() : parts_(std::make_unique<Parts>()) {}

LocalCluster::~LocalCluster() = default;

StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Create(const Workload& workload,
                                                             process::RunnerOptions options) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster);
  Parts& parts = *cluster->parts_;
  std::map<std::string, int32_t> bases;
  for (const Workload::Job& job : workload.jobs) {
    const auto count = static_cast<int32_t>(std::max<int64_t>(1, api::TotalReplicas(job.job)));
    ASSIGN_OR_RETURN(bases[job.job.key()], parts.ports.Choose(count));
  }
  parts.address = [bases](const api::TFJob& job, api::ReplicaType type) {
    return render::Loopback(bases.at(job.key()))(job, type);
  };
  options.pod_environment = LoneAddresses(workload, parts.address);
  ASSIGN_OR_RETURN(parts.runner, process::Runner::Create(parts.store, std::move(options)));
  control::ManagerOptions control;
  control.discovery = &parts.store;
  control.settings.address = parts.address;
  ASSIGN_OR_RETURN(const auto ring, KeyOfThisRun());
  control.settings.keys = [ring] { return ring; };
  control.settings.policy.network_policies = policy::NetworkPolicies::kIgnored;
  ASSIGN_OR_RETURN(parts.manager, control::Manager::Start(parts.store, std::move(control)));
  return cluster;
}

client::Client& LocalCluster::client() {
  return parts_->store;
}

std::string LocalCluster::AddressOf(const api::TFJob& job, const api::ReplicaId& slot) const {
  return parts_->address(job, slot.type)(slot.index);
}

Status LocalCluster::Submit(const Workload& workload) {
  for (const auto& map : workload.config_maps) {
    RETURN_IF_ERROR(parts_->store.Create(objects::Kind::kConfigMap, *map).status());
  }
  for (const Workload::Job& job : workload.jobs) {
    RETURN_IF_ERROR(parts_->store.Create(objects::Kind::kTFJob, *job.object).status());
  }
  return OkStatus();
}

}  // namespace tfjob::local
