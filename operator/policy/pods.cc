#include "operator/policy/pods.h"

#include <algorithm>
#include <utility>

#include "operator/api/reasons.h"
#include "operator/policy/blocked.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/rules/clean_up.h"
#include "operator/policy/rules/counted_restarts.h"
#include "operator/policy/rules/key_choice.h"
#include "operator/policy/rules/lost_pod.h"
#include "operator/policy/rules/recreation_delay.h"

namespace tfjob::policy {
namespace {

// Returns true if the verdict's status records that the slot's departed pod is being replaced, but
// the job's current status does not. The next pod must wait until the new status is written: if the
// pod were created and the write then failed, the replacement would not be recorded anywhere.
bool IsUnrecorded(const Draft& draft, const Slot& slot, const Replica& replica) {
  return replica.departed && replica.state == ReplicaState::kMissing &&
         !IsCounted(*replica.pod, slot.type, draft.job.status);
}

// Returns why the slot's pod must not be created now; nullopt if it may be.
std::optional<PodThatWaits> MustWait(const Draft& draft, const Slot& slot, const Replica& replica) {
  PodThatWaits waits{slot, draft.NameOf(slot), std::nullopt, ""};
  if (replica.state != ReplicaState::kMissing && !replica.departed) {
    waits.why = "the previous pod still exists";
    return waits;
  }
  if (draft.waits_for_queue) {
    waits.why = draft.lacks_network_policy ? "the operator creates no NetworkPolicies"
                                           : "the pod group is not ready for pods yet";
    return waits;
  }
  if (draft.policy_changes_in) {
    waits.not_before = draft.now + *draft.policy_changes_in;
    waits.why = "the NetworkPolicy keeps being changed, so its next restore is delayed";
    return waits;
  }
  if (draft.replicas.any_outdated) {
    waits.why = "pods of the previous attempt still exist";
    return waits;
  }
  if (draft.verdict.status.attempt != draft.job.status.attempt) {
    waits.not_before = draft.now;  // at the next reconcile
    waits.why = "the status must record the new attempt first";
    return waits;
  }
  if (IsUnrecorded(draft, slot, replica)) {
    waits.not_before = draft.now;
    waits.why = "the status must record first how the previous pod ended";
    return waits;
  }
  const History* history = draft.history();
  if (history == nullptr) return std::nullopt;
  const Duration now = draft.snapshot.steady_now;
  if (const auto left = TimeBlocked(history->blocked_pods, waits.name, now, draft.options)) {
    waits.not_before = draft.now + *left;
    waits.why = "a pod of that name belongs to another owner";
    return waits;
  }
  const Duration not_before = NotBefore(history->Find(slot), draft.options).value_or(now);
  if (not_before <= now) return std::nullopt;
  waits.not_before = draft.now + (not_before - now);
  waits.why = "it failed before, so its recreation is delayed";
  return waits;
}

bool WantsPod(const Replica& replica) {
  switch (replica.state) {
    case ReplicaState::kMissing:
    case ReplicaState::kRetryable:
    case ReplicaState::kDisrupted:
    case ReplicaState::kReplacing:
    case ReplicaState::kTerminating:
    case ReplicaState::kOutdated:
      return true;
    case ReplicaState::kFailed:
      return replica.departed;  // a tolerated failure: recreated only if the failed pod is gone
    case ReplicaState::kPending:
    case ReplicaState::kActive:
    case ReplicaState::kCompleted:
    case ReplicaState::kSucceeded:
      return false;
  }
  return false;
}

void WantPod(const Slot& slot, const Replica& replica, Draft& draft) {
  if (replica.state == ReplicaState::kReplacing) {
    draft.DeletePod(*replica.pod, DeleteReason::kRestart);
  } else if (replica.state == ReplicaState::kOutdated) {
    draft.DeletePod(*replica.pod, DeleteReason::kNewAttempt);
  }
  if (!WantsPod(replica)) return;
  if (std::optional<PodThatWaits> waits = MustWait(draft, slot, replica)) {
    if (waits->not_before) draft.RequeueAfter(*waits->not_before - draft.now);
    draft.verdict.waiting_pods.push_back(*std::move(waits));
  } else {
    draft.verdict.create_pods.push_back({slot, draft.NameOf(slot), draft.status().attempt});
  }
}

// Returns how long the new pods wait for the live pods' key; nullopt if they do not wait.
std::optional<Duration> TimeToAwaitKey(const Draft& draft, const std::string& missing) {
  if (!draft.snapshot.awaited_key_ids.contains(missing)) return std::nullopt;
  if (draft.history() == nullptr || !draft.history()->first_seen) return std::nullopt;
  const Duration left =
      *draft.history()->first_seen + draft.options.key_patience - draft.snapshot.steady_now;
  if (left <= Duration::zero()) return std::nullopt;
  return std::min(left, draft.options.key_retry);
}

void HoldBackNewPods(Duration wait, Draft& draft) {
  for (PodToCreate& pod : draft.verdict.create_pods) {
    draft.verdict.waiting_pods.push_back(
        {pod.slot, std::move(pod.name), draft.now + wait,
         "the operator does not have the key of the job's other pods yet"});
  }
  draft.verdict.create_pods.clear();
  draft.RequeueAfter(wait);
}

// Chooses the operator's key for the new pods, or makes the pods wait. The event about a missing
// key is standing, because the problem lasts as long as the live pods exist.
void ChooseKeyOfNewPods(Draft& draft) {
  if (draft.verdict.create_pods.empty()) return;
  KeyChoice choice = ChooseKey(draft.replicas, draft.snapshot.key_ids);
  if (const auto wait = TimeToAwaitKey(draft, choice.missing)) {
    return HoldBackNewPods(*wait, draft);
  }
  if (!choice.missing.empty()) {
    draft.AddEvent(JobEvent{objects::EventType::kWarning, api::kReasonJobKeyMissing,
                            api::JobKeyMissingMessage(draft.job, choice.missing, choice.id),
                            StrCat("key/", choice.missing, "/", choice.id), true});
  }
  draft.verdict.key_id = std::move(choice.id);
}

}  // namespace

void WantPods(Draft& draft) {
  for (const ReplicaGroup& group : draft.replicas.groups) {
    for (int32_t i = 0; i < group.size(); ++i) WantPod({group.type, i}, group.replicas[i], draft);
  }
  ChooseKeyOfNewPods(draft);
  for (const objects::Pod* pod : draft.replicas.surplus) {
    const bool outdated = AttemptOf(*pod) < draft.status().attempt;
    draft.DeletePod(*pod, outdated ? DeleteReason::kNewAttempt : DeleteReason::kScaleDown);
  }
}

void DropPods(Draft& draft) {
  for (const auto& pod : draft.snapshot.pods) draft.DeletePod(*pod, DeleteReason::kSuspend);
}

void CleanUpPods(Draft& draft) {
  const api::CleanPodPolicy policy =
      draft.job.spec.run_policy.clean_pod_policy.value_or(api::CleanPodPolicy::kNone);
  for (const auto& pod : draft.snapshot.pods) {
    if (IsCleanedUp(*pod, policy)) draft.DeletePod(*pod, DeleteReason::kCleanUp);
  }
}

void HandleLostPods(Draft& draft) {
  if (!draft.snapshot.lost_nodes || draft.snapshot.lost_nodes->empty()) return;
  for (const auto& pod : draft.snapshot.pods) {
    const auto left = TimeToLost(*pod, draft.snapshot.lost_nodes, draft.now, draft.options);
    // A pod with grace period 0 is kept only by its finalizers, so skip it.
    if (!left || pod->metadata.deletion_grace_period_seconds == 0) continue;
    if (*left > Duration::zero()) {
      draft.RequeueAfter(*left);
    } else if (ForcesDeletion(draft.job)) {
      draft.verdict.delete_pods.push_back(
          {pod->metadata.name, pod->metadata.uid, 0, DeleteReason::kLostNode});
    } else {
      draft.AddEvent(JobEvent{objects::EventType::kWarning, api::kReasonPodOnLostNode,
                              api::PodOnLostNodeMessage(pod->metadata.name, pod->node_name),
                              StrCat("lost-node/", pod->metadata.uid), true});
    }
  }
}

}  // namespace tfjob::policy
