#include "operator/policy/draft.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/rules/counted_restarts.h"
#include "operator/policy/rules/counts.h"

namespace tfjob::policy {
namespace {

// Sorts objects by slot. Objects without a slot come last, sorted by name.
template <typename Ref>
void SortBySlot(const std::string& job_name, std::vector<Ref>& refs) {
  const auto key = [&](const Ref& ref) {
    const std::optional<Slot> slot = SlotOfName(job_name, ref.name);
    return std::make_tuple(!slot.has_value(), slot.value_or(Slot()), std::string_view(ref.name));
  };
  std::sort(refs.begin(), refs.end(), [&](const Ref& a, const Ref& b) { return key(a) < key(b); });
}

// Returns true if `now` differs from `before`. Ignores the removal of UIDs from `replacing`, which
// alone is not worth a status write.
bool IsNews(const api::TFJobStatus& before, const api::TFJobStatus& now) {
  api::TFJobStatus same_notes = now;
  for (auto& [type, replica] : same_notes.replica_statuses) {
    const auto old = before.replica_statuses.find(type);
    if (old == before.replica_statuses.end()) return true;
    const std::vector<std::string>& noted = old->second.replacing;
    if (!std::includes(noted.begin(), noted.end(), replica.replacing.begin(),
                       replica.replacing.end())) {
      return true;
    }
    replica.replacing = noted;
  }
  return same_notes != before;
}

}  // namespace

Draft::Draft(const api::TFJob& job, const Snapshot& snapshot, Time now,
             const DecisionOptions& options)
    : job(job), snapshot(snapshot), now(now), options(options) {
  verdict.status = job.status;
}

std::string Draft::NameOf(const Slot& slot) const {
  return api::ReplicaName(job.metadata.name, slot.type, slot.index);
}

void Draft::Rearrange() {
  replicas = Arrange(job, verdict.status, snapshot, departed);
}

void Draft::AddEvent(JobEvent event) {
  if (event.standing && history() != nullptr && history()->reported.contains(event.cause)) return;
  verdict.events.push_back(std::move(event));
}

void Draft::AddEvent(objects::EventType type, std::string reason, std::string message,
                     std::string cause) {
  AddEvent(JobEvent{type, std::move(reason), std::move(message), std::move(cause), false});
}

void Draft::RequeueAfter(Duration delay) {
  delay = std::max(delay, Duration::zero());
  verdict.requeue_after = std::min(verdict.requeue_after.value_or(delay), delay);
}

void Draft::DeletePod(const objects::Pod& pod, DeleteReason reason) {
  if (pod.metadata.terminating()) return;
  verdict.delete_pods.push_back({pod.metadata.name, pod.metadata.uid, std::nullopt, reason});
}

Verdict Draft::Finish() {
  SortBySlot(job.metadata.name, verdict.delete_pods);
  SortBySlot(job.metadata.name, verdict.delete_services);
  SortBySlot(job.metadata.name, verdict.adopt_services);
  ForgetGonePods(snapshot, options, verdict.status);
  // Once a job has ended, its summary (`ready` and `restarts`) no longer changes.
  if (!api::IsFinished(job.status)) Summarize(job, verdict.status);
  if (!IsNews(job.status, verdict.status)) verdict.status = job.status;
  return std::move(verdict);
}

}  // namespace tfjob::policy
