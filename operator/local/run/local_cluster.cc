#include "operator/local/run/local_cluster.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/view/training_slot.h"
#include "runtime/base/env.h"

namespace tfjob::local {

namespace {

// Returns the environment that sets the address at which the trainer of a job with one task serves
// progress. Such a job gets no TF_CONFIG that would name it.
std::function<process::Variables(const objects::ObjectMeta&)> LoneAddresses(
    const Workload& workload, const render::AddressScheme& address) {
  std::map<std::string, std::string> addresses;  // by namespace/job
  for (const Workload::Job& job : workload.jobs) {
    if (const auto slot = view::TrainingSlot(job.job); slot && api::IsLocal(job.job)) {
      addresses[job.job.key()] = address(job.job, *slot);
    }
  }
  return [addresses](const objects::ObjectMeta& pod) -> process::Variables {
    const auto found = addresses.find(StrCat(pod.name_space, "/", pod.label(api::kJobNameLabel)));
    if (found == addresses.end()) return {};
    return {{"TFJOB_ADDRESS", found->second}};
  };
}

}  // namespace

LocalCluster::LocalCluster()
    : store_({.node_name = HostName(), .uid_prefix = store::RandomUidPrefix()}) {}

StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Create(const Workload& workload,
                                                             process::Options options) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster);
  std::map<std::string, int32_t> bases;
  for (const Workload::Job& job : workload.jobs) {
    const auto count = static_cast<int32_t>(std::max<int64_t>(1, api::TotalReplicas(job.job)));
    ASSIGN_OR_RETURN(bases[job.job.key()], cluster->ports_.Choose(count));
  }
  cluster->address_ = [bases](const api::TFJob& job, const policy::Slot& slot) {
    return render::Loopback(bases.at(job.key()))(job, slot);
  };
  options.pod_environment = LoneAddresses(workload, cluster->address_);
  ASSIGN_OR_RETURN(cluster->runner_, process::Runner::Create(cluster->store_, std::move(options)));
  control::Options control;
  control.discovery = &cluster->store_;
  control.settings.address = cluster->address_;
  ASSIGN_OR_RETURN(cluster->manager_, control::Manager::Start(cluster->store_, std::move(control)));
  return cluster;
}

Status LocalCluster::Submit(const Workload& workload) {
  for (const auto& map : workload.config_maps) {
    RETURN_IF_ERROR(store_.Create(client::Kind::kConfigMap, *map).status());
  }
  for (const Workload::Job& job : workload.jobs) {
    RETURN_IF_ERROR(store_.Create(client::Kind::kTFJob, *job.object).status());
  }
  return OkStatus();
}

}  // namespace tfjob::local
