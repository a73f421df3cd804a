#include "operator/policy/gang_scheduler.h"

#include "absl/strings/ascii.h"

namespace tfjob::policy {
namespace {

constexpr char kVolcanoName[] = "volcano";

}  // namespace

std::string_view Name(GangScheduler scheduler) {
  switch (scheduler) {
    case GangScheduler::kNone:
      return "none";
    case GangScheduler::kVolcano:
      return kVolcanoName;
    case GangScheduler::kCoscheduling:
      return "scheduler-plugins";
  }
  return "";
}

Gang GangFromFlag(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower({name.data(), name.size()});
  if (lower.empty() || lower == "none") return {};
  if (lower == kVolcanoName) return {GangScheduler::kVolcano, kVolcanoName};
  return {GangScheduler::kCoscheduling, std::string(name)};
}

}  // namespace tfjob::policy
