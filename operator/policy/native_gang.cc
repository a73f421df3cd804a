#include "operator/policy/native_gang.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/reasons.h"
#include "operator/objects/custom_resource.h"

namespace tfjob::policy {
namespace {

// How often the operator checks again whether the server has the API.
constexpr Duration kObstaclePatience = 1min;

bool HasEnded(const objects::Pod& pod) {
  return pod.phase == objects::PodPhase::kSucceeded || pod.phase == objects::PodPhase::kFailed;
}

template <typename Predicate>
bool AnyPod(const Snapshot& snapshot, Predicate holds) {
  return std::any_of(snapshot.pods.begin(), snapshot.pods.end(),
                     [&](const auto& pod) { return holds(*pod); });
}

// Returns the job's group, preferably one that is not being deleted.
const objects::CustomResource* FindNativeGroup(const Snapshot& snapshot) {
  const objects::CustomResource* found = nullptr;
  for (const PodGroup& group : snapshot.pod_groups) {
    if (group.scheduler != GangScheduler::kNative) continue;
    if (found == nullptr || found->metadata.terminating()) found = group.object.get();
  }
  return found;
}

bool IsBeingDeleted(const Snapshot& snapshot) {
  const objects::CustomResource* group = FindNativeGroup(snapshot);
  if (group != nullptr && group->metadata.terminating()) return true;
  return std::any_of(snapshot.workloads.begin(), snapshot.workloads.end(),
                     [](const auto& workload) { return workload->metadata.terminating(); });
}

int64_t MinCountOf(const objects::CustomResource& group) {
  const JsonField spec = JsonField(*group.object)["spec"];
  return spec["schedulingPolicy"]["gang"]["minCount"].IntOr(0).value_or(0);
}

// Returns how many members of the group, not counting those that have ended, will exist once every
// replica that needs a pod has one.
int64_t MembersToCome(const Draft& draft) {
  int64_t members = 0;
  for (const ReplicaGroup& group : draft.replicas.groups) {
    for (const Replica& replica : group.replicas) {
      switch (replica.state) {
        case ReplicaState::kPending:
        case ReplicaState::kActive:
          members += replica.pod->in_scheduling_group ? 1 : 0;
          break;
        case ReplicaState::kFailed:
          members += replica.departed ? 1 : 0;  // a tolerated failure; the pod is recreated
          break;
        case ReplicaState::kCompleted:
        case ReplicaState::kSucceeded:
          break;
        default:
          ++members;
      }
    }
  }
  return members;
}

bool AnyPlaced(const Draft& draft) {
  return AnyPod(draft.snapshot, [](const objects::Pod& pod) { return !pod.node_name.empty(); });
}

bool AnyEnded(const Draft& draft) {
  return std::any_of(draft.replicas.groups.begin(), draft.replicas.groups.end(),
                     [](const ReplicaGroup& group) {
                       return group.Succeeded() + group.Count(ReplicaState::kFailed) > 0;
                     });
}

// Returns the wanted spec. Because replicas that have ended (for example, before a suspension) are
// not recreated, lowers min_member to the number of members that can still exist.
PodGroupSpec Fitting(const PodGroupSpec& wanted, const Draft& draft) {
  PodGroupSpec fitting = wanted;
  if (AnyEnded(draft)) {
    fitting.min_member = std::max<int64_t>(1, std::min(wanted.min_member, MembersToCome(draft)));
  }
  return fitting;
}

PodGroupRef ReferenceTo(const objects::CustomResource& group) {
  return {GangScheduler::kNative, group.metadata.name, group.metadata.uid};
}

void RecreateOrKeep(const objects::CustomResource& group, int64_t wanted, Draft& draft) {
  if (!AnyPod(draft.snapshot, [](const objects::Pod& pod) { return !HasEnded(pod); })) {
    draft.verdict.delete_pod_groups.push_back(ReferenceTo(group));
    DropWorkloads(draft);
    draft.waits_for_queue = true;
    return;
  }
  const int64_t kept = MinCountOf(group);
  draft.AddEvent(JobEvent{objects::EventType::kWarning, api::kReasonPodGroupKept,
                          api::PodGroupKeptMessage(group.metadata.name, kept, wanted),
                          StrCat("pod-group-kept/", group.metadata.uid, "/", wanted), true});
}

}  // namespace

std::string SchedulerOfTemplates(const api::TFJob& job) {
  for (const auto& [type, spec] : job.spec.replicas) {
    if (spec.pod_template == nullptr) continue;
    const std::string name =
        JsonField(*spec.pod_template)["spec"]["schedulerName"].StringOr("").value_or("");
    if (!name.empty()) return name;
  }
  return "";
}

std::string NativeObstacle(const Snapshot& snapshot) {
  if (NativeVersionOf(snapshot.native_version) != NativeVersion::kNone) return "";
  return api::NoNativeGangsMessage(snapshot.native_version);
}

bool NativeMustWait(const Gang& gang, const Snapshot& snapshot) {
  if (gang.native_version == NativeVersion::kNone) return true;
  return IsBeingDeleted(snapshot) && !AnyPod(snapshot, [](const objects::Pod& pod) {
           return !HasEnded(pod) && !pod.metadata.terminating();
         });
}

void WantNativeGroup(const PodGroupSpec& wanted, Draft& draft) {
  Gang& gang = draft.verdict.gang;
  if (gang.native_version == NativeVersion::kNone) {
    draft.AddEvent(JobEvent{objects::EventType::kWarning, api::kReasonFailedCreatePodGroup,
                            api::FailedCreateMessage(draft.obstacle),
                            StrCat("native/", draft.obstacle), true});
    draft.RequeueAfter(kObstaclePatience);
  }
  if (draft.waits_for_queue) return;
  const objects::CustomResource* group = FindNativeGroup(draft.snapshot);
  const PodGroupSpec fitting = Fitting(wanted, draft);
  if (draft.snapshot.workloads.empty()) {
    draft.verdict.create_workload = group == nullptr ? fitting : wanted;
  }
  if (group == nullptr) {
    draft.verdict.create_pod_group = fitting;
    gang.alone = AnyPlaced(draft) && MembersToCome(draft) < fitting.min_member;
    return;
  }
  int64_t min_count = MinCountOf(*group);
  const bool fits = min_count >= fitting.min_member && min_count <= wanted.min_member;
  if (!fits && !group->metadata.terminating()) {
    if (gang.native_version == NativeVersion::kV1Alpha2) {
      RecreateOrKeep(*group, wanted.min_member, draft);
    } else {
      draft.verdict.change_pod_group = PodGroupChange{ReferenceTo(*group), wanted};
      min_count = wanted.min_member;
    }
  }
  // As long as no pod has been placed and no replica has ended, new pods join the group and wait in
  // it until the group has enough members.
  gang.alone = (AnyPlaced(draft) || AnyEnded(draft)) && MembersToCome(draft) < min_count;
}

void DropWorkloads(Draft& draft) {
  for (const auto& workload : draft.snapshot.workloads) {
    if (workload->metadata.terminating()) continue;
    draft.verdict.delete_workloads.push_back({workload->metadata.name, workload->metadata.uid});
  }
}

}  // namespace tfjob::policy
