#include "operator/render/tf_config_size.h"

#include "operator/api/replicas.h"
#include "operator/render/cluster_spec.h"

namespace tfjob::render {
namespace {

using api::ReplicaType;

// Returns the type that contributes the most addresses to the longest TF_CONFIG. In dynamic mode,
// no task gets the addresses of the workers.
ReplicaType LargestType(const api::TFJob& job) {
  ReplicaType largest = ReplicaType::kPS;
  for (const auto& [type, spec] : job.spec.replicas) {
    if (job.spec.enable_dynamic_worker && type == ReplicaType::kWorker) continue;
    if (api::Replicas(job, type) > api::Replicas(job, largest)) largest = type;
  }
  return largest;
}

bool Fits(api::TFJob job, ReplicaType type, int32_t replicas, const AddressScheme& address) {
  job.spec.replicas[type].replicas = replicas;
  return ClusterSpec(job, address).LongestTfConfig() <= kMaxTfConfig;
}

// Returns the largest number of replicas of the type that fits if the numbers of the other types do
// not change; 0 if no number fits.
int32_t MostThatFit(const api::TFJob& job, ReplicaType type, const AddressScheme& address) {
  int32_t fits = 0;
  int32_t too_many = api::Replicas(job, type);
  while (too_many - fits > 1) {
    const int32_t middle = fits + (too_many - fits) / 2;
    (Fits(job, type, middle, address) ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace

Status CheckTfConfigSize(const api::TFJob& job, const ClusterSpec& cluster,
                         const AddressScheme& address) {
  const size_t size = cluster.LongestTfConfig();
  if (size <= kMaxTfConfig) return OkStatus();
  const ReplicaType type = LargestType(job);
  const std::string path = StrCat("spec.tfReplicaSpecs.", api::Name(type), ".replicas");
  const int32_t replicas = api::Replicas(job, type);
  const size_t each = address(job, type)(replicas - 1).size() + sizeof(R"("",)") - 1;
  const int32_t most = MostThatFit(job, type, address);
  std::string advice = most > 0 ? StrCat("; at most ", most, " replicas of this type fit")
                                : std::string("; reduce the other types as well");
  if (!job.spec.enable_dynamic_worker) {
    advice +=
        ", or set spec.enableDynamicWorker to true, so that each task gets only the "
        "addresses it needs";
  }
  return InvalidArgument(path, ": TF_CONFIG would have ", size, " bytes (", replicas,
                         " addresses of this type with up to ", each,
                         " bytes each, and those of the other types), but Linux starts no program "
                         "with more than ",
                         kMaxTfConfig, " bytes in this variable", advice);
}

}  // namespace tfjob::render
