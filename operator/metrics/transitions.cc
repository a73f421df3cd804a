#include "operator/metrics/transitions.h"

#include <algorithm>

#include "operator/api/conditions.h"

namespace tfjob::metrics {
namespace {

using api::ConditionType;

bool Becomes(ConditionType type, const api::TFJobStatus& before, const api::TFJobStatus& after) {
  return api::IsTrue(after, type) && !api::IsTrue(before, type);
}

api::ReplicaStatus Of(const api::TFJobStatus& status, api::ReplicaType type) {
  const auto found = status.replica_statuses.find(type);
  return found == status.replica_statuses.end() ? api::ReplicaStatus() : found->second;
}

// Returns the number of pods that are being replaced in `after` but were not in `before`.
int NewlyReplacing(const api::ReplicaStatus& before, const api::ReplicaStatus& after) {
  return static_cast<int>(
      std::count_if(after.replacing.begin(), after.replacing.end(), [&](const std::string& uid) {
        return std::find(before.replacing.begin(), before.replacing.end(), uid) ==
               before.replacing.end();
      }));
}

std::optional<Duration> Between(std::optional<Time> from, std::optional<Time> to) {
  if (!from || !to) return std::nullopt;
  return std::max(Duration(0), *to - *from);
}

}  // namespace

Transitions Compare(const objects::ObjectMeta& job, const api::TFJobStatus& before,
                    const api::TFJobStatus& after) {
  Transitions found;
  found.created = api::Find(after, ConditionType::kCreated) != nullptr &&
                  api::Find(before, ConditionType::kCreated) == nullptr;
  found.succeeded = Becomes(ConditionType::kSucceeded, before, after);
  found.failed = Becomes(ConditionType::kFailed, before, after);
  found.restarted =
      Becomes(ConditionType::kRestarting, before, after) || after.attempt > before.attempt;
  for (const auto& [type, now] : after.replica_statuses) {
    const api::ReplicaStatus old = Of(before, type);
    const int replacing = NewlyReplacing(old, now);
    found.restarted |= replacing > 0;
    found.failed_pods += replacing + std::max(0, now.failed - old.failed);
  }
  const bool restarts_before = api::Find(before, ConditionType::kRestarting) != nullptr;
  if (Becomes(ConditionType::kRunning, before, after) && !restarts_before) {
    // The first reconcile after creation sets startTime, and so does the reconcile that resumes the
    // job.
    const bool resumed = api::Find(after, ConditionType::kSuspended) != nullptr;
    found.pending = Between(resumed ? after.start_time : job.creation_timestamp,
                            api::Find(after, ConditionType::kRunning)->last_transition_time);
  }
  if (found.succeeded || found.failed) {
    found.running = Between(after.start_time, after.completion_time);
  }
  return found;
}

}  // namespace tfjob::metrics
