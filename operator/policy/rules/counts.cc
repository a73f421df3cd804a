#include "operator/policy/rules/counts.h"

#include <algorithm>
#include <limits>

#include "operator/api/names.h"
#include "operator/api/replicas.h"

namespace tfjob::policy {
namespace {

// Returns whether the entry of a type that is not in the spec must be kept: restarts never
// decrease, and completed indexes and counted pods are still needed if the type is added again.
bool IsWorthKeeping(const api::ReplicaStatus& replica) {
  return replica.restarts > 0 || !replica.completed_indexes.empty() || !replica.replacing.empty();
}

// Returns whether the replica has a failed pod that still exists and must be kept.
bool HasFailedPod(const Replica& replica) {
  return replica.state == ReplicaState::kFailed && !replica.departed &&
         !replica.pod->metadata.terminating();
}

void ForgetAbsentTypes(const api::TFJob& job, api::TFJobStatus& status) {
  for (auto entry = status.replica_statuses.begin(); entry != status.replica_statuses.end();) {
    api::ReplicaStatus& replica = entry->second;
    if (job.spec.replicas.contains(entry->first)) {
      ++entry;
    } else if (IsWorthKeeping(replica)) {
      replica.active = replica.succeeded = replica.failed = 0;
      ++entry;
    } else {
      entry = status.replica_statuses.erase(entry);
    }
  }
}

}  // namespace

void CountReplicas(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status) {
  ForgetAbsentTypes(job, status);
  for (const ReplicaGroup& group : replicas.groups) {
    api::ReplicaStatus& replica = status.replica_statuses[group.type];
    replica.active = group.Count(ReplicaState::kActive);
    replica.succeeded = group.Succeeded();
    replica.failed = static_cast<int32_t>(
        std::count_if(group.replicas.begin(), group.replicas.end(), HasFailedPod));
    if (replica.selector.empty()) {
      replica.selector = api::SelectorText(job.metadata.name, group.type);
    }
  }
}

void CountSuspendedReplicas(const api::TFJob& job, const Replicas& replicas,
                            const Snapshot& snapshot, api::TFJobStatus& status) {
  CountReplicas(job, replicas, status);
  for (auto& [type, replica] : status.replica_statuses) replica.active = 0;
  for (const auto& pod : snapshot.pods) {
    const std::optional<Slot> slot = SlotOfName(job.metadata.name, pod->metadata.name);
    if (!slot || pod->phase != objects::PodPhase::kRunning) continue;
    const auto replica = status.replica_statuses.find(slot->type);
    if (replica != status.replica_statuses.end()) ++replica->second.active;
  }
}

void CountAtSuccess(api::TFJobStatus& status) {
  for (auto& [type, replica] : status.replica_statuses) {
    replica.succeeded += replica.active;
    replica.active = 0;
  }
}

void CountAtFailure(const Replicas& replicas, api::TFJobStatus& status) {
  for (const ReplicaGroup& group : replicas.groups) {
    for (const Replica& replica : group.replicas) {
      const bool given_up = replica.state == ReplicaState::kRetryable ||
                            replica.state == ReplicaState::kDisrupted ||
                            replica.state == ReplicaState::kReplacing;
      const bool ended_the_job = replica.state == ReplicaState::kFailed && !HasFailedPod(replica);
      if (ended_the_job || (given_up && !replica.pod->metadata.terminating())) {
        ++status.replica_statuses[group.type].failed;
      }
    }
  }
}

void Summarize(const api::TFJob& job, api::TFJobStatus& status) {
  int64_t active = 0;
  int64_t restarts = 0;
  for (const auto& [type, replica] : status.replica_statuses) {
    active += replica.active;
    restarts += replica.restarts;
  }
  status.ready = StrCat(active, "/", api::TotalReplicas(job));
  status.restarts =
      static_cast<int32_t>(std::min<int64_t>(restarts, std::numeric_limits<int32_t>::max()));
}

}  // namespace tfjob::policy
