#include "operator/policy/facts/replicas.h"

#include <algorithm>
#include <array>

#include "operator/api/replicas.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/facts/restart_policy.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {
namespace {

using objects::PodPhase;

const api::ReplicaStatus* StatusOf(const api::TFJobStatus& status, api::ReplicaType type) {
  const auto found = status.replica_statuses.find(type);
  return found == status.replica_statuses.end() ? nullptr : &found->second;
}

// Returns the completed indexes of the type. Ignores invalid text, which the operator cannot have
// written.
api::IndexSet CompletedIndexes(const api::TFJobStatus& status, api::ReplicaType type) {
  const api::ReplicaStatus* replica = StatusOf(status, type);
  if (replica == nullptr) return {};
  return api::IndexSet::Parse(replica->completed_indexes).value_or(api::IndexSet());
}

bool IsReplacing(const api::TFJobStatus& status, api::ReplicaType type, const std::string& uid) {
  const api::ReplicaStatus* replica = StatusOf(status, type);
  return replica != nullptr &&
         std::binary_search(replica->replacing.begin(), replica->replacing.end(), uid);
}

// Returns the state of a replica whose pod ended in this way, as long as the status does not record
// this end. Returns kMissing if the end alone does not determine the state.
ReplicaState StateAfter(PodEnd end) {
  switch (end) {
    case PodEnd::kDone:
      return ReplicaState::kCompleted;
    case PodEnd::kSucceeded:
      return ReplicaState::kSucceeded;
    case PodEnd::kFailed:
      return ReplicaState::kFailed;
    case PodEnd::kRetryable:
      return ReplicaState::kRetryable;
    case PodEnd::kDisrupted:
      return ReplicaState::kDisrupted;
    case PodEnd::kNone:
    case PodEnd::kRestartedInPlace:
    case PodEnd::kDeleted:
      return ReplicaState::kMissing;
  }
  return ReplicaState::kMissing;
}

ReplicaState StateOf(const objects::Pod& pod, const ReplicaGroup& group,
                     const api::TFJobStatus& status) {
  if (AttemptOf(pod) < status.attempt) return ReplicaState::kOutdated;
  const PodEnd end = JudgeEnd(pod, group.policy);
  const ReplicaState after = StateAfter(end);
  if (after == ReplicaState::kCompleted) return after;
  if (IsReplacing(status, group.type, pod.metadata.uid)) {
    if (pod.metadata.terminating()) return ReplicaState::kTerminating;
    if (after == ReplicaState::kRetryable || after == ReplicaState::kDisrupted) {
      return ReplicaState::kReplacing;
    }
  }
  if (end == PodEnd::kDeleted) {
    return BehaviorOf(group.policy).restarts_replicas ? ReplicaState::kDisrupted
                                                      : ReplicaState::kTerminating;
  }
  if (after != ReplicaState::kMissing) return after;
  return pod.phase == PodPhase::kRunning ? ReplicaState::kActive : ReplicaState::kPending;
}

void JudgeGroup(const api::TFJobStatus& status, ReplicaGroup& group) {
  const api::IndexSet completed = CompletedIndexes(status, group.type);
  for (int32_t i = 0; i < group.size(); ++i) {
    Replica& replica = group.replicas[i];
    if (replica.pod != nullptr) replica.state = StateOf(*replica.pod, group, status);
    if (replica.state != ReplicaState::kOutdated && completed.Contains(i)) {
      replica.state = ReplicaState::kCompleted;
    }
  }
}

using Groups = std::array<ReplicaGroup*, api::kReplicaTypes.size()>;

ReplicaGroup* GroupOf(const Groups& groups, const std::optional<Slot>& slot) {
  if (!slot) return nullptr;
  ReplicaGroup* group = groups[static_cast<size_t>(slot->type)];
  return group != nullptr && slot->index < group->size() ? group : nullptr;
}

// Returns the replica for an empty slot whose last pod was `pod`, or an empty replica if that pod
// no longer matters.
Replica AfterDeparture(const objects::Pod& pod, const ReplicaGroup& group,
                       const api::TFJobStatus& status, DepartedPods departed) {
  if (IsReplacing(status, group.type, pod.metadata.uid)) {
    return {&pod, ReplicaState::kMissing, true};
  }
  const ReplicaState after = StateAfter(JudgeEnd(pod, group.policy));
  const bool matters = after == ReplicaState::kCompleted ||
                       (departed == DepartedPods::kAll && after != ReplicaState::kMissing &&
                        after != ReplicaState::kSucceeded);
  return matters ? Replica{&pod, after, true} : Replica();
}

void AddDeparted(const api::TFJob& job, const api::TFJobStatus& status, const Snapshot& snapshot,
                 const Groups& groups, DepartedPods departed) {
  for (const std::shared_ptr<const objects::Pod>& pod : snapshot.departed) {
    const std::optional<Slot> slot = SlotOfName(job.metadata.name, pod->metadata.name);
    ReplicaGroup* group = GroupOf(groups, slot);
    if (group == nullptr || AttemptOf(*pod) != status.attempt) continue;
    Replica& replica = group->replicas[slot->index];
    if (replica.state == ReplicaState::kMissing) {
      replica = AfterDeparture(*pod, *group, status, departed);
    }
  }
}

}  // namespace

int32_t ReplicaGroup::Count(ReplicaState state) const {
  return static_cast<int32_t>(
      std::count_if(replicas.begin(), replicas.end(),
                    [state](const Replica& replica) { return replica.state == state; }));
}

int32_t ReplicaGroup::Succeeded() const {
  return Count(ReplicaState::kCompleted) + Count(ReplicaState::kSucceeded);
}

const ReplicaGroup* Replicas::Find(api::ReplicaType type) const {
  for (const ReplicaGroup& group : groups) {
    if (group.type == type && group.size() > 0) return &group;
  }
  return nullptr;
}

bool Replicas::Has(const std::optional<Slot>& slot) const {
  const ReplicaGroup* group = slot ? Find(slot->type) : nullptr;
  return group != nullptr && slot->index < group->size();
}

int64_t Replicas::Size() const {
  int64_t size = 0;
  for (const ReplicaGroup& group : groups) size += group.size();
  return size;
}

Replicas Arrange(const api::TFJob& job, const api::TFJobStatus& status, const Snapshot& snapshot,
                 DepartedPods departed) {
  Replicas result;
  Groups by_type{};
  result.groups.reserve(api::kReplicaTypes.size());
  for (const auto& [type, spec] : job.spec.replicas) {
    ReplicaGroup& group = result.groups.emplace_back();
    group.type = type;
    group.policy = api::EffectiveRestartPolicy(spec);
    group.replicas.resize(std::clamp(api::Replicas(job, type), 0, kMaxSlots));
    by_type[static_cast<size_t>(type)] = &group;
  }
  for (const std::shared_ptr<const objects::Pod>& pod : snapshot.pods) {
    result.any_outdated |= AttemptOf(*pod) < status.attempt;
    const std::optional<Slot> slot = SlotOfName(job.metadata.name, pod->metadata.name);
    ReplicaGroup* group = GroupOf(by_type, slot);
    if (group == nullptr) {
      result.surplus.push_back(pod.get());
    } else {
      group->replicas[slot->index].pod = pod.get();
    }
  }
  for (ReplicaGroup& group : result.groups) JudgeGroup(status, group);
  if (departed != DepartedPods::kNone) AddDeparted(job, status, snapshot, by_type, departed);
  return result;
}

}  // namespace tfjob::policy
