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

// The part of the status that concerns one replica type.
struct Memory {
  api::IndexSet completed;
  const std::vector<std::string>* replacing = nullptr;  // sorted

  bool IsReplacing(const std::string& uid) const {
    return replacing != nullptr && std::binary_search(replacing->begin(), replacing->end(), uid);
  }
};

Memory MemoryOf(const api::TFJobStatus& status, api::ReplicaType type) {
  Memory memory;
  const auto found = status.replica_statuses.find(type);
  if (found == status.replica_statuses.end()) return memory;
  // Invalid text, which the operator cannot have written, is ignored.
  if (auto completed = api::IndexSet::Parse(found->second.completed_indexes); completed.ok()) {
    memory.completed = *std::move(completed);
  }
  memory.replacing = &found->second.replacing;
  return memory;
}

ReplicaState StateOfFailed(const objects::Pod& pod, api::RestartPolicy policy, bool replacing) {
  switch (JudgeFailure(pod, policy)) {
    case FailureKind::kPermanent:
      return ReplicaState::kFailed;
    case FailureKind::kRetryable:
      return replacing ? ReplicaState::kReplacing : ReplicaState::kRetryable;
    case FailureKind::kDisrupted:
      return replacing ? ReplicaState::kReplacing : ReplicaState::kDisrupted;
  }
  return ReplicaState::kFailed;
}

ReplicaState StateOf(const objects::Pod& pod, api::RestartPolicy policy, const Memory& memory,
                     int32_t attempt) {
  if (AttemptOf(pod) < attempt) return ReplicaState::kOutdated;
  if (IsCompleted(pod, policy)) return ReplicaState::kCompleted;
  const bool replacing = memory.IsReplacing(pod.metadata.uid);
  if (pod.metadata.terminating()) {
    const bool explained = replacing || !BehaviorOf(policy).restarts_replicas;
    return explained ? ReplicaState::kTerminating : ReplicaState::kDisrupted;
  }
  switch (pod.phase) {
    case PodPhase::kSucceeded:
      return ReplicaState::kSucceeded;
    case PodPhase::kFailed:
      return StateOfFailed(pod, policy, replacing);
    case PodPhase::kRunning:
      return ReplicaState::kActive;
    case PodPhase::kPending:
    case PodPhase::kUnknown:
      return ReplicaState::kPending;
  }
  return ReplicaState::kPending;
}

void JudgeGroup(const api::TFJobStatus& status, ReplicaGroup& group) {
  const Memory memory = MemoryOf(status, group.type);
  const bool remembers = !memory.completed.empty();
  for (int32_t i = 0; i < group.size(); ++i) {
    Replica& replica = group.replicas[i];
    if (replica.pod != nullptr) {
      replica.state = StateOf(*replica.pod, group.policy, memory, status.attempt);
    }
    if (remembers && replica.state != ReplicaState::kOutdated && memory.completed.Contains(i)) {
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

// Marks an empty slot as completed if a departed pod of that slot had done its work.
void AddDeparted(const api::TFJob& job, const api::TFJobStatus& status, const Snapshot& snapshot,
                 const Groups& groups) {
  for (const std::shared_ptr<const objects::Pod>& pod : snapshot.departed) {
    const std::optional<Slot> slot = SlotOfName(job.metadata.name, pod->metadata.name);
    ReplicaGroup* group = GroupOf(groups, slot);
    if (group == nullptr || AttemptOf(*pod) != status.attempt) continue;
    Replica& replica = group->replicas[slot->index];
    if (replica.state == ReplicaState::kMissing && IsCompleted(*pod, group->policy)) {
      replica = {pod.get(), ReplicaState::kCompleted};
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
                 bool departed) {
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
  if (departed) AddDeparted(job, status, snapshot, by_type);
  return result;
}

}  // namespace tfjob::policy
