#include "operator/render/pod_group.h"

#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/render/native_group.h"

namespace tfjob::render {
namespace {

using policy::GangScheduler;

// kubectl's copy of the whole manifest: large, and useless to a scheduler.
constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";

Json SpecOf(const policy::Gang& gang, const policy::PodGroupSpec& wanted) {
  Json spec = {{"minMember", wanted.min_member}};
  if (!wanted.min_resources.empty()) spec["minResources"] = wanted.min_resources;
  if (gang.scheduler == GangScheduler::kVolcano) {
    spec["queue"] = wanted.queue;
    if (!wanted.priority_class.empty()) spec["priorityClassName"] = wanted.priority_class;
  } else if (wanted.schedule_timeout_seconds) {
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
  metadata.annotations = job.metadata.annotations;
  metadata.annotations.erase(kLastApplied);
  metadata.labels = api::JobSelector(job.metadata.name);
  metadata.owner_references = {api::OwnerReferenceOf(job)};
  const bool volcano = gang.scheduler == GangScheduler::kVolcano;
  return {
      {"apiVersion", volcano ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1"},
      {"kind", "PodGroup"},
      {"metadata", objects::ToJson(metadata)},
      {"spec", SpecOf(gang, spec)}};
}

Json PatchPodGroup(const policy::Gang& gang, const policy::PodGroupSpec& spec,
                   const std::string& uid) {
  if (gang.scheduler == GangScheduler::kNative) {
    return {{"metadata", {{"uid", uid}}}, {"spec", PatchNativeGroup(spec)}};
  }
  Json changed = SpecOf(gang, spec);
  changed.erase("queue");
  // A merge patch adds to a map but never removes from it: null removes the map as a whole.
  if (!changed.contains("minResources")) changed["minResources"] = nullptr;
  if (gang.scheduler == GangScheduler::kVolcano && !changed.contains("priorityClassName")) {
    changed["priorityClassName"] = nullptr;
  }
  return {{"metadata", {{"uid", uid}}}, {"spec", std::move(changed)}};
}

void JoinPodGroup(const policy::Gang& gang, const std::string& group, const std::string& type,
                  objects::ObjectMeta& pod, Json& spec) {
  switch (gang.scheduler) {
    case GangScheduler::kNone:
      return;
    case GangScheduler::kVolcano:
      pod.annotations[api::kVolcanoGroupAnnotation] = group;
      pod.annotations[api::kVolcanoTaskAnnotation] = type;
      return;
    case GangScheduler::kCoscheduling:
      pod.labels.Set(api::kPodGroupLabel, group);
      return;
    case GangScheduler::kNative:
      if (!gang.alone) spec["schedulingGroup"] = {{"podGroupName", group}};
      return;
  }
}

}  // namespace tfjob::render
