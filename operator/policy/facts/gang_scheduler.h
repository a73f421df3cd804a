// Describes the gang schedulers, which place either all pods of a job or none. Each scheduler is a
// row of a table. Code that depends on the scheduler looks up its row, so a new scheduler needs
// only a new row. The API of Kubernetes' own scheduler differs in form from those of the other
// schedulers; policy/native_gang.h and render/native_group.h handle the differences.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/objects/kind.h"

namespace tfjob::policy {

// The versions of the API group scheduling.k8s.io in which this project can write Workloads and
// PodGroups.
enum class NativeVersion {
  kNone,
  kV1Alpha2,  // Kubernetes 1.36: a gang's minCount is immutable
  kV1Beta1,   // 1.37
};
// Parses an apiVersion such as "scheduling.k8s.io/v1beta1"; returns kNone for unknown versions.
NativeVersion NativeVersionOf(std::string_view api_version);
std::string_view ApiVersionOf(NativeVersion version);

enum class GangScheduler {
  kNone,
  kVolcano,       // scheduling.volcano.sh PodGroup; pods are created once the queue admits it
  kCoscheduling,  // scheduling.x-k8s.io PodGroup of scheduler-plugins
  kNative,        // Kubernetes' own Workload and PodGroup (scheduling.k8s.io)
};

struct GangTraits {
  GangScheduler scheduler = GangScheduler::kNone;
  // The scheduler's name in the annotation tfjob.dev/gang-scheduler, such as "volcano".
  std::string_view name;
  // The schedulerName for pods whose template has none.
  std::string_view scheduler_name;
  // True if users may deploy this scheduler under any name. An unknown name in
  // --gang-scheduler-name is then taken to be this scheduler's name.
  bool has_any_name = false;
  objects::Kind pod_group_kind = objects::Kind::kPodGroup;
  // True if a Workload must be created before the pod group.
  bool has_workload = false;
  // True if no pods or services may be created until the group's status.phase shows that the queue
  // has admitted the group.
  bool waits_for_admission = false;
  // Whether the spec of this scheduler's PodGroup has the optional fields minResources, queue and
  // priorityClassName.
  bool has_min_resources = false;
  bool has_queue = false;
  bool has_priority_class = false;
  bool has_schedule_timeout = false;
  // The keys under which a pod of the group has the group's name (as a label or an annotation) and
  // its own replica type (as an annotation); "" if the scheduler does not use them.
  std::string_view group_label;
  std::string_view group_annotation;
  std::string_view type_annotation;
  // The DNS domain of the annotations that the scheduler reads from the group: the job's
  // annotations whose keys belong to this domain, or to a subdomain of it, are copied to the group.
  // If "", no annotations are copied.
  std::string_view annotation_domain;
};

const GangTraits& TraitsOf(GangScheduler scheduler);
// Returns the row whose name is `name`, which may be "none"; nullptr if the name is unknown.
const GangTraits* FindGangScheduler(std::string_view name);
// Returns the row of the scheduler whose pod groups belong to the API group of `api_version`, in
// any version; nullptr if there is none.
const GangTraits* FindGangSchedulerOfGroup(std::string_view api_version);

std::string_view Name(GangScheduler scheduler);  // "volcano"
// Returns the scheduler that uses this kind of pod group; kNone if the kind is not a pod group.
GangScheduler SchedulerOf(objects::Kind pod_group_kind);
// Returns the kinds of objects that make up a gang, in the order in which they are created.
std::vector<objects::Kind> GangKindsOf(GangScheduler scheduler);

struct Gang {
  GangScheduler scheduler = GangScheduler::kNone;
  std::string scheduler_name;  // for pods whose template has none
  NativeVersion native_version = NativeVersion::kNone;
  // True if new pods do not become members of the group; native_gang.h explains when.
  bool alone = false;
  // True if neither the job's annotation nor a schedulerName in its templates can opt out of the
  // gang.
  bool enforced = false;

  bool operator==(const Gang&) const = default;
};

// Parses --gang-scheduler-name. "" and "none" mean no gang. "none", "volcano" and "native" may have
// any letter case. Any other value is the name of a scheduler that supports the PodGroup of
// scheduler-plugins.
Gang GangFromFlag(std::string_view name);

// Contains the fields of a PodGroup's spec that are derived from the job. A field that the
// scheduler's PodGroup does not have is empty.
struct PodGroupSpec {
  int64_t min_member = 0;
  std::string queue;
  std::string priority_class;
  std::map<std::string, std::string> min_resources;
  std::optional<int32_t> schedule_timeout_seconds;

  bool operator==(const PodGroupSpec&) const = default;
};

}  // namespace tfjob::policy
