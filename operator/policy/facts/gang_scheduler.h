// Which scheduler places a job's pods all together or not at all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tfjob::policy {

// The versions of scheduling.k8s.io whose Workloads and PodGroups this project writes.
enum class NativeVersion {
  kNone,
  kV1Alpha2,  // Kubernetes 1.36: a gang's minCount can never be changed
  kV1Beta1,   // 1.37
};
// "scheduling.k8s.io/v1beta1"; kNone for others.
NativeVersion NativeVersionOf(std::string_view api_version);
std::string_view ApiVersionOf(NativeVersion version);

enum class GangScheduler {
  kNone,
  kVolcano,       // scheduling.volcano.sh PodGroup; pods are created once it is let into its queue
  kCoscheduling,  // scheduling.x-k8s.io PodGroup of the scheduler-plugins
  kNative,        // scheduling.k8s.io Workload and PodGroup of Kubernetes itself
};
std::string_view Name(GangScheduler scheduler);  // "volcano", as annotations say it

struct Gang {
  GangScheduler scheduler = GangScheduler::kNone;
  std::string scheduler_name;  // of pods whose template names none
  NativeVersion native_version = NativeVersion::kNone;
  // New pods are no members of the group (native_gang.h).
  bool alone = false;

  bool operator==(const Gang&) const = default;
};

// What --gang-scheduler-name means: nothing for "" and "none"; "volcano" and "native" in any letter case; everything else is
// the name of a scheduler that knows the scheduler-plugins' PodGroup.
Gang GangFromFlag(std::string_view name);

// The part of a PodGroup's spec that the job decides.
struct PodGroupSpec {
  int64_t min_member = 0;
  std::string queue;           // Volcano's
  std::string priority_class;  // Volcano's
  std::map<std::string, std::string> min_resources;
  std::optional<int32_t> schedule_timeout_seconds;  // the scheduler-plugins'

  bool operator==(const PodGroupSpec&) const = default;
};

}  // namespace tfjob::policy
