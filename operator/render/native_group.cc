#include "operator/render/native_group.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/names.h"

namespace tfjob::render {
namespace {

using policy::NativeVersion;

constexpr char kApiGroup[] = "kubeflow.org";
constexpr char kTemplate[] = "replicas";  // name of the Workload's template for the group

Json Together(int64_t min_count) {
  return {{"gang", {{"minCount", min_count}}}};
}

// Returns the name and the value of the field that a group uses to refer to its Workload and to the
// Workload's template.
std::pair<const char*, Json> TemplateReference(NativeVersion version, const std::string& workload) {
  if (version == NativeVersion::kV1Alpha2) {
    return {"podGroupTemplateRef",
            {{"workload", {{"workloadName", workload}, {"podGroupTemplateName", kTemplate}}}}};
  }
  return {"workloadRef", {{"workloadName", workload}, {"templateName", kTemplate}}};
}

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
  return Object(
      job, version, "Workload",
      {{"controllerRef",
        {{"apiGroup", kApiGroup}, {"kind", api::kKind}, {"name", job.metadata.name}}},
       {"podGroupTemplates",
        Json::array({{{"name", kTemplate}, {"schedulingPolicy", Together(spec.min_member)}}})}});
}

Json BuildNativeGroup(const api::TFJob& job, NativeVersion version,
                      const policy::PodGroupSpec& spec) {
  auto [field, reference] = TemplateReference(version, job.metadata.name);
  return Object(job, version, "PodGroup",
                {{field, std::move(reference)}, {"schedulingPolicy", Together(spec.min_member)}});
}

Json PatchNativeGroup(const policy::PodGroupSpec& spec) {
  return {{"schedulingPolicy", Together(spec.min_member)}};
}

}  // namespace tfjob::render
