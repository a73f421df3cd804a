#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/render/native_group.h"

namespace tfjob::render::v1alpha2 {
namespace {

constexpr char kGroup[] = "kubeflow.org";
constexpr char kTemplate[] = "replicas";

Json Together(int64_t min_count) {
  return {{"gang", {{"minCount", min_count}}}};
}

}  // namespace

Json WorkloadSpec(const std::string& job, int64_t min_count) {
  return {{"controllerRef", {{"apiGroup", kGroup}, {"kind", api::kKind}, {"name", job}}},
          {"podGroupTemplates",
           Json::array({{{"name", kTemplate}, {"schedulingPolicy", Together(min_count)}}})}};
}

Json PodGroupSpec(const std::string& workload, int64_t min_count) {
  return {{"podGroupTemplateRef",
           {{"workload", {{"workloadName", workload}, {"podGroupTemplateName", kTemplate}}}}},
          {"schedulingPolicy", Together(min_count)}};
}

}  // namespace tfjob::render::v1alpha2
