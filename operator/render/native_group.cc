#include "operator/render/native_group.h"

#include <nlohmann/json.hpp>

#include "operator/api/names.h"

namespace tfjob::render {
namespace {

using policy::NativeVersion;

Json Object(const api::TFJob& job, NativeVersion version, const char* kind, Json spec) {
  objects::ObjectMeta metadata;
  metadata.name = job.metadata.name;
  metadata.name_space = job.metadata.name_space;
  metadata.labels = api::JobSelector(job.metadata.name);
  metadata.owner_references = {api::OwnerReferenceOf(job)};
  return {{"apiVersion", policy::ApiVersionOf(version)},
          {"kind", kind},
          {"metadata", objects::ToJson(metadata)},
          {"spec", std::move(spec)}};
}

}  // namespace

Json BuildWorkload(const api::TFJob& job, NativeVersion version, const policy::PodGroupSpec& spec) {
  const auto build =
      version == NativeVersion::kV1Alpha2 ? v1alpha2::WorkloadSpec : v1beta1::WorkloadSpec;
  return Object(job, version, "Workload", build(job.metadata.name, spec.min_member));
}

Json BuildNativeGroup(const api::TFJob& job, NativeVersion version,
                      const policy::PodGroupSpec& spec) {
  const auto build =
      version == NativeVersion::kV1Alpha2 ? v1alpha2::PodGroupSpec : v1beta1::PodGroupSpec;
  return Object(job, version, "PodGroup", build(job.metadata.name, spec.min_member));
}

Json PatchNativeGroup(const policy::PodGroupSpec& spec) {
  return {{"schedulingPolicy", {{"gang", {{"minCount", spec.min_member}}}}}};
}

}  // namespace tfjob::render
