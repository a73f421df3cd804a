#include "operator/policy/facts/gang_scheduler.h"

#include "absl/strings/ascii.h"

namespace tfjob::policy {
namespace {

constexpr char kVolcanoName[] = "volcano";
constexpr char kNativeName[] = "native";
// Kubernetes' own scheduler.
constexpr char kDefaultScheduler[] = "default-scheduler";

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

std::string_view Name(GangScheduler scheduler) {
  switch (scheduler) {
    case GangScheduler::kNone:
      return "none";
    case GangScheduler::kVolcano:
      return kVolcanoName;
    case GangScheduler::kCoscheduling:
      return "scheduler-plugins";
    case GangScheduler::kNative:
      return kNativeName;
  }
  return "";
}

Gang GangFromFlag(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower({name.data(), name.size()});
  if (lower.empty() || lower == "none") return {};
  if (lower == kVolcanoName) return {GangScheduler::kVolcano, kVolcanoName};
  if (lower == kNativeName) return {GangScheduler::kNative, kDefaultScheduler};
  return {GangScheduler::kCoscheduling, std::string(name)};
}

}  // namespace tfjob::policy
