// Names the schedulers that place a job's pods all together or not at all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tfjob::policy {

// The versions of scheduling.k8s.io whose Workloads and PodGroups this project writes.
enum class NativeVersion {
  kNone,
  kV1Alpha2,  // Kubernetes 1.36: a gang's minCount is immutable
  kV1Beta1,   // 1.37
};
// Parses "scheduling.k8s.io/v1beta1"; kNone for other versions.
NativeVersion NativeVersionOf(std::string_view api_version);
std::string_view ApiVersionOf(NativeVersion version);

enum class GangScheduler {
  kNone,
  kVolcano,       // scheduling.volcano.sh PodGroup; pods are created once its queue admits it
  kCoscheduling,  // scheduling.x-k8s.io PodGroup of the scheduler-plugins
  kNative,        // scheduling.k8s.io Workload and PodGroup of Kubernetes itself
};
std::string_view Name(GangScheduler scheduler);  // "volcano", as written in annotations

struct Gang {
  GangScheduler scheduler = GangScheduler::kNone;
  std::string scheduler_name;  // of pods whose template names none
  NativeVersion native_version = NativeVersion::kNone;
  // New pods are not members of the group (native_gang.h).
  bool alone = false;

  bool operator==(const Gang&) const = default;
};

// Parses --gang-scheduler-name. "" and "none" mean no gang; "volcano" and "native" are recognised
// in any letter case; everything else is the name of a scheduler that supports the
// scheduler-plugins' PodGroup.
Gang GangFromFlag(std::string_view name);

// The part of a PodGroup's spec that the job decides.
struct PodGroupSpec {
  int64_t min_member = 0;
  std::string queue;           // Volcano only
  std::string priority_class;  // Volcano only
  std::map<std::string, std::string> min_resources;
  std::optional<int32_t> schedule_timeout_seconds;  // scheduler-plugins only

  bool operator==(const PodGroupSpec&) const = default;
};

}  // namespace tfjob::policy
