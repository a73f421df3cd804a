#include "operator/policy/facts/gang_scheduler.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "operator/api/names.h"

namespace tfjob::policy {
namespace {

using objects::Kind;

// The rows of the table, in the order of GangScheduler.
constexpr std::array<GangTraits, 4> kTraits = {{
    {.scheduler = GangScheduler::kNone, .name = "none"},
    {.scheduler = GangScheduler::kVolcano,
     .name = "volcano",
     .scheduler_name = "volcano",
     .pod_group_kind = Kind::kPodGroup,
     .waits_for_admission = true,
     .has_min_resources = true,
     .has_queue = true,
     .has_priority_class = true,
     .group_annotation = api::kVolcanoGroupAnnotation,
     .type_annotation = api::kVolcanoTaskAnnotation,
     .annotation_domain = "volcano.sh"},
    {.scheduler = GangScheduler::kCoscheduling,
     .name = "scheduler-plugins",
     .scheduler_name = "scheduler-plugins-scheduler",  // its default name in its Helm chart
     .has_any_name = true,
     .pod_group_kind = Kind::kCoschedulingPodGroup,
     .has_min_resources = true,
     .has_schedule_timeout = true,
     .group_label = api::kPodGroupLabel,
     .annotation_domain = "scheduling.x-k8s.io"},
    {.scheduler = GangScheduler::kNative,
     .name = "native",
     .scheduler_name = "default-scheduler",
     .pod_group_kind = Kind::kNativePodGroup,
     .has_workload = true},
}};

template <typename Predicate>
const GangTraits* FindRow(Predicate holds) {
  const auto* found = std::find_if(kTraits.begin(), kTraits.end(), holds);
  return found == kTraits.end() ? nullptr : found;
}

// Returns "scheduling.volcano.sh" for "scheduling.volcano.sh/v1beta1".
std::string_view ApiGroupOf(std::string_view api_version) {
  return api_version.substr(0, api_version.find('/'));
}

}  // namespace

NativeVersion NativeVersionOf(std::string_view api_version) {
  for (const NativeVersion version : {NativeVersion::kV1Alpha2, NativeVersion::kV1Beta1}) {
    if (api_version == ApiVersionOf(version)) return version;
  }
  return NativeVersion::kNone;
}

std::string_view ApiVersionOf(NativeVersion version) {
  switch (version) {
    case NativeVersion::kNone:
      return "";
    case NativeVersion::kV1Alpha2:
      return "scheduling.k8s.io/v1alpha2";
    case NativeVersion::kV1Beta1:
      return "scheduling.k8s.io/v1beta1";
  }
  return "";
}

const GangTraits& TraitsOf(GangScheduler scheduler) {
  return kTraits[static_cast<size_t>(scheduler)];
}

const GangTraits* FindGangScheduler(std::string_view name) {
  return FindRow([name](const GangTraits& traits) { return traits.name == name; });
}

const GangTraits* FindGangSchedulerOfGroup(std::string_view api_version) {
  if (api_version.find('/') == std::string_view::npos) return nullptr;
  return FindRow([api_version](const GangTraits& traits) {
    return traits.scheduler != GangScheduler::kNone &&
           ApiGroupOf(objects::NewestApiVersion(traits.pod_group_kind)) == ApiGroupOf(api_version);
  });
}

std::string_view Name(GangScheduler scheduler) {
  return TraitsOf(scheduler).name;
}

GangScheduler SchedulerOf(objects::Kind pod_group_kind) {
  const GangTraits* found = FindRow([pod_group_kind](const GangTraits& traits) {
    return traits.scheduler != GangScheduler::kNone && traits.pod_group_kind == pod_group_kind;
  });
  return found == nullptr ? GangScheduler::kNone : found->scheduler;
}

std::vector<objects::Kind> GangKindsOf(GangScheduler scheduler) {
  const GangTraits& traits = TraitsOf(scheduler);
  if (scheduler == GangScheduler::kNone) return {};
  if (traits.has_workload) return {Kind::kWorkload, traits.pod_group_kind};
  return {traits.pod_group_kind};
}

Gang GangFromFlag(std::string_view name) {
  if (name.empty()) return {};
  const GangTraits* traits = FindGangScheduler(absl::AsciiStrToLower({name.data(), name.size()}));
  if (traits != nullptr && !traits->has_any_name) {
    return {traits->scheduler, std::string(traits->scheduler_name)};
  }
  traits = FindRow([](const GangTraits& row) { return row.has_any_name; });
  return {traits->scheduler, std::string(name)};
}

}  // namespace tfjob::policy
