// Describes the schedulers that place a job's pods all together or not at all, one row of a table
// each. Code that depends on the scheduler asks its row, so that a further scheduler is a further
// row. Kubernetes' own scheduler also has an API of another form: policy/native_gang.h and
// render/native_group.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/objects/kind.h"

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

struct GangTraits {
  GangScheduler scheduler = GangScheduler::kNone;
  // "volcano": as in the annotation tfjob.dev/gang-scheduler.
  std::string_view name;
  // schedulerName of pods whose template names none.
  std::string_view scheduler_name;
  // Users give this scheduler any name: an unknown name in --gang-scheduler-name means this one.
  bool has_any_name = false;
  objects::Kind pod_group_kind = objects::Kind::kPodGroup;
  // A Workload precedes the pod group.
  bool has_workload = false;
  // Nothing else is created until status.phase of the group shows that its queue has admitted it.
  bool waits_for_admission = false;
  // Optional fields of the group's spec.
  bool has_min_resources = false;
  bool has_queue = false;
  bool has_priority_class = false;
  bool has_schedule_timeout = false;
  // Members of the group carry its name in this label or annotation, and their replica type in the
  // last; "" if unused.
  std::string_view group_label;
  std::string_view group_annotation;
  std::string_view type_annotation;
};

const GangTraits& TraitsOf(GangScheduler scheduler);
// Returns the row of that name, including "none"; nullptr if there is none.
const GangTraits* FindGangScheduler(std::string_view name);
// Returns the row whose pod groups have that apiVersion, in any version of their API group;
// nullptr if there is none.
const GangTraits* FindGangSchedulerOfGroup(std::string_view api_version);

std::string_view Name(GangScheduler scheduler);  // "volcano"
// Returns the scheduler of a kind of pod group.
GangScheduler SchedulerOf(objects::Kind pod_group_kind);
// Returns the kinds of the objects that make a gang, in the order in which they are created.
std::vector<objects::Kind> GangKindsOf(GangScheduler scheduler);

struct Gang {
  GangScheduler scheduler = GangScheduler::kNone;
  std::string scheduler_name;  // of pods whose template names none
  NativeVersion native_version = NativeVersion::kNone;
  // New pods are not members of the group (native_gang.h).
  bool alone = false;

  bool operator==(const Gang&) const = default;
};

// Parses --gang-scheduler-name. "" and "none" mean no gang; "none", "volcano" and "native" are
// recognised in any letter case; everything else is the name of a scheduler that supports the
// scheduler-plugins' PodGroup.
Gang GangFromFlag(std::string_view name);

// The part of a PodGroup's spec that the job decides. Fields that the scheduler lacks are empty.
struct PodGroupSpec {
  int64_t min_member = 0;
  std::string queue;
  std::string priority_class;
  std::map<std::string, std::string> min_resources;
  std::optional<int32_t> schedule_timeout_seconds;

  bool operator==(const PodGroupSpec&) const = default;
};

}  // namespace tfjob::policy
