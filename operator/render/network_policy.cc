#include "operator/render/network_policy.h"

#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/objects/kind.h"
#include "operator/render/merge_patch.h"

namespace tfjob::render {

using objects::Kind;

Json BuildNetworkPolicy(const api::TFJob& job, const policy::NetworkPolicySpec& spec) {
  objects::ObjectMeta metadata;
  metadata.name = api::NetworkPolicyName(job.metadata.name);
  metadata.name_space = job.metadata.name_space;
  metadata.labels = api::JobSelector(job.metadata.name);
  metadata.owner_references = {api::OwnerReferenceOf(job)};
  return {{"apiVersion", objects::NewestApiVersion(Kind::kNetworkPolicy)},
          {"kind", Name(Kind::kNetworkPolicy)},
          {"metadata", objects::ToJson(metadata)},
          {"spec", policy::NetworkPolicyRules(job.metadata.name, spec)}};
}

Json PatchNetworkPolicy(const objects::CustomResource& existing, const std::string& job_name,
                        const policy::NetworkPolicySpec& spec) {
  const Json* found = JsonField(*existing.object)["spec"].value();
  const Json wanted = policy::NetworkPolicyRules(job_name, spec);
  return {{"metadata", {{"uid", existing.metadata.uid}}},
          {"spec", MergePatch(found == nullptr ? Json() : *found, wanted)}};
}

}  // namespace tfjob::render
