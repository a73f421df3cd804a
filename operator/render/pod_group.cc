#include "operator/render/pod_group.h"

#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/objects/kind.h"
#include "operator/render/merge_patch.h"
#include "operator/render/native_group.h"

namespace tfjob::render {
namespace {

using policy::GangScheduler;

// Returns whether an annotation's key, such as "volcano.sh/preemptable", belongs to the domain or
// to one of its subdomains.
bool BelongsTo(std::string_view key, std::string_view domain) {
  const std::string_view prefix = key.substr(0, key.find('/'));
  if (domain.empty() || prefix.size() == key.size() || !prefix.ends_with(domain)) return false;
  return prefix.size() == domain.size() || prefix[prefix.size() - domain.size() - 1] == '.';
}

Json SpecOf(const policy::GangTraits& traits, const policy::PodGroupSpec& wanted) {
  Json spec = {{"minMember", wanted.min_member}};
  if (!wanted.min_resources.empty()) spec["minResources"] = wanted.min_resources;
  if (traits.has_queue) spec["queue"] = wanted.queue;
  if (!wanted.priority_class.empty()) spec["priorityClassName"] = wanted.priority_class;
  if (wanted.schedule_timeout_seconds) {
    spec["scheduleTimeoutSeconds"] = *wanted.schedule_timeout_seconds;
  }
  return spec;
}

}  // namespace

Json BuildPodGroup(const api::TFJob& job, const policy::Gang& gang,
                   const policy::PodGroupSpec& spec) {
  if (gang.scheduler == GangScheduler::kNative) {
    return BuildNativeGroup(job, gang.native_version, spec);
  }
  objects::ObjectMeta metadata;
  metadata.name = job.metadata.name;
  metadata.name_space = job.metadata.name_space;
  const policy::GangTraits& traits = policy::TraitsOf(gang.scheduler);
  for (const auto& [key, value] : job.metadata.annotations) {
    if (BelongsTo(key, traits.annotation_domain)) metadata.annotations[key] = value;
  }
  metadata.labels = api::JobSelector(job.metadata.name);
  metadata.owner_references = {api::OwnerReferenceOf(job)};
  return {{"apiVersion", objects::NewestApiVersion(traits.pod_group_kind)},
          {"kind", Name(traits.pod_group_kind)},
          {"metadata", objects::ToJson(metadata)},
          {"spec", SpecOf(traits, spec)}};
}

Json PatchPodGroup(const policy::Gang& gang, const policy::PodGroupSpec& spec,
                   const objects::CustomResource& group) {
  const std::string& uid = group.metadata.uid;
  if (gang.scheduler == GangScheduler::kNative) {
    return {{"metadata", {{"uid", uid}}}, {"spec", PatchNativeGroup(spec)}};
  }
  const policy::GangTraits& traits = policy::TraitsOf(gang.scheduler);
  Json changed = SpecOf(traits, spec);
  changed.erase("queue");
  // Set unwanted fields to null, because a merge patch keeps the fields that it does not mention.
  Json& resources = changed["minResources"];
  const Json* found = JsonField(*group.object)["spec"]["minResources"].value();
  if (found != nullptr && resources.is_object()) resources = MergePatch(*found, resources);
  if (traits.has_priority_class && !changed.contains("priorityClassName")) {
    changed["priorityClassName"] = nullptr;
  }
  return {{"metadata", {{"uid", uid}}}, {"spec", std::move(changed)}};
}

void JoinPodGroup(const policy::Gang& gang, const std::string& group, const std::string& type,
                  objects::ObjectMeta& pod, Json& spec) {
  const policy::GangTraits& traits = policy::TraitsOf(gang.scheduler);
  if (!traits.group_label.empty()) pod.labels.Set(std::string(traits.group_label), group);
  if (!traits.group_annotation.empty()) {
    pod.annotations[std::string(traits.group_annotation)] = group;
  }
  if (!traits.type_annotation.empty()) pod.annotations[std::string(traits.type_annotation)] = type;
  if (gang.scheduler == GangScheduler::kNative && !gang.alone) {
    spec["schedulingGroup"] = {{"podGroupName", group}};
  }
}

}  // namespace tfjob::render
