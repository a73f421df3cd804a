#include "operator/policy/decide.h"

#include "operator/api/conditions.h"
#include "operator/api/reasons.h"
#include "operator/policy/blocked.h"
#include "operator/policy/draft.h"
#include "operator/policy/events.h"
#include "operator/policy/gang.h"
#include "operator/policy/last_words.h"
#include "operator/policy/network_policy.h"
#include "operator/policy/pods.h"
#include "operator/policy/refusal.h"
#include "operator/policy/rules/completed.h"
#include "operator/policy/rules/counts.h"
#include "operator/policy/rules/deadline.h"
#include "operator/policy/rules/end.h"
#include "operator/policy/rules/managed_by.h"
#include "operator/policy/rules/restarts.h"
#include "operator/policy/rules/running.h"
#include "operator/policy/rules/suspend.h"
#include "operator/policy/rules/ttl.h"
#include "operator/policy/services.h"
#include "operator/policy/spec_warnings.h"

namespace tfjob::policy {
namespace {

using api::ConditionType;

bool IsNotOurs(const api::TFJob& job) {
  return IsManagedElsewhere(job) || job.metadata.terminating();
}

Verdict Ignore(const api::TFJob& job) {
  Verdict verdict;
  verdict.status = job.status;
  return verdict;
}

void WriteCreated(Draft& draft) {
  // Do not overwrite an existing condition: its reason may now be that the server refuses the pods.
  if (api::Find(draft.status(), ConditionType::kCreated) != nullptr) return;
  api::SetCondition(draft.status(), ConditionType::kCreated, true, api::kReasonCreated,
                    api::CreatedMessage(draft.job), draft.now);
  for (JobEvent& event : WarnAboutSpec(draft.job, draft.verdict.gang))
    draft.AddEvent(std::move(event));
}

// Returns the cause of an event that accompanies the change of a condition at `now`. A reconcile
// that is repeated with the same `now` yields the same cause.
std::string CauseAt(std::string_view what, Time now) {
  return StrCat(what, "/", FormatTime(now));
}

void Suspend(Draft& draft) {
  draft.verdict.stage = Stage::kSuspended;
  draft.departed = DepartedPods::kCompleted;
  draft.Rearrange();
  RememberCompleted(draft.job, draft.replicas, draft.status());
  CountContainerRestarts(draft.replicas, draft.status());
  CountSuspendedReplicas(draft.job, draft.replicas, draft.snapshot, draft.status());
  if (WriteSuspended(draft.job, draft.now, draft.status())) {
    draft.AddEvent(objects::EventType::kNormal, api::kReasonSuspended,
                   api::SuspendedMessage(draft.job), CauseAt("suspended", draft.now));
  }
  DropPods(draft);
  DropServices(draft);
  DropPodGroups(draft);
  DropUnusedNetworkPolicy(draft);
}

void ResumeOrStart(Draft& draft) {
  if (WriteResumed(draft.job, draft.now, draft.status())) {
    draft.departed = DepartedPods::kNone;
    draft.AddEvent(objects::EventType::kNormal, api::kReasonResumed, api::ResumedMessage(draft.job),
                   CauseAt("resumed", draft.now));
  }
  // A job that is waiting in a queue has not started, so startTime is set later.
  if (!draft.status().start_time && !draft.waits_for_queue) {
    draft.status().start_time = TruncateToSeconds(draft.now);
  }
}

// Handles a job that has ended: cleans up, then applies the TTL.
void CleanUp(Draft& draft) {
  draft.verdict.stage = Stage::kEnded;
  CleanUpPods(draft);
  DropServices(draft);
  DropPodGroups(draft);
  DropUnusedNetworkPolicy(draft);
  const std::optional<Duration> left = TimeToLive(draft.job, draft.status(), draft.now);
  if (!left) return;
  draft.verdict.delete_job = *left <= Duration::zero();
  if (!draft.verdict.delete_job) draft.RequeueAfter(*left);
}

void EndJob(const End& end, Draft& draft) {
  ReportLosses(draft);
  ReportExitsAtEnd(draft);
  CountReplicas(draft.job, draft.replicas, draft.status());
  if (end.condition == ConditionType::kSucceeded) {
    CountAtSuccess(draft.status());
  } else {
    CountAtFailure(draft.replicas, draft.status());
  }
  draft.status().completion_time = TruncateToSeconds(draft.now);
  const bool failed = end.condition == ConditionType::kFailed;
  const std::string message = end.message + (failed ? LastWordsSentence(draft.replicas) : "");
  api::SetCondition(draft.status(), end.condition, true, end.reason, message, draft.now);
  draft.AddEvent(end.event_type, end.reason, message, "end");
  CleanUp(draft);
}

void Restart(Draft& draft) {
  const std::vector<Restarted> restarts =
      FindRestarts(draft.job, draft.replicas, draft.snapshot, draft.status());
  if (restarts.empty()) return;
  ReportRestarts(restarts, draft);
  if (draft.job.spec.run_policy.restart_scope == api::RestartScope::kJob) {
    StartAttempt(restarts, draft.replicas, draft.status());
  } else {
    CountRestarts(restarts, draft.status());
  }
  const Restarted& first = restarts.front();
  const std::string words = first.pod == nullptr ? "" : LastWordsSentence(*first.pod);
  api::SetCondition(draft.status(), ConditionType::kRestarting, true, api::kReasonRestarting,
                    api::RestartingMessage(draft.job, first.slot.type) + words, draft.now);
  draft.Rearrange();
}

void WriteRunning(Draft& draft) {
  if (!DriverRuns(draft.replicas)) return;
  if (api::IsTrue(draft.status(), ConditionType::kRestarting) &&
      !ReplacementsExist(draft.job, draft.replicas, draft.history())) {
    return;
  }
  api::SetCondition(draft.status(), ConditionType::kRunning, true, api::kReasonRunning,
                    api::RunningMessage(draft.job), draft.now);
}

void Continue(Draft& draft) {
  draft.verdict.stage = Stage::kRunning;
  Restart(draft);
  WriteRefusal(draft);
  WriteRunning(draft);
  CountReplicas(draft.job, draft.replicas, draft.status());
  ReportReplicas(draft);
  WantPodGroup(draft);
  WantNetworkPolicy(draft);
  WantServices(draft);
  WantPods(draft);
  WarnAboutBlockedNames(draft);
  for (JobEvent& event : WarnAboutAnnotations(draft.job, draft.verdict.gang))
    draft.AddEvent(std::move(event));
  if (const auto left = TimeToDeadline(draft.job, draft.status(), draft.now)) {
    draft.RequeueAfter(*left);
  }
}

void Run(Draft& draft) {
  ResumeOrStart(draft);
  draft.Rearrange();
  for (const objects::Pod* pod : RememberCompleted(draft.job, draft.replicas, draft.status())) {
    ReportExit(*pod, draft);
  }
  CountSurplusPods(draft.job, draft.replicas, draft.status());
  if (const std::optional<End> end =
          FindEnd(draft.job, draft.status(), draft.replicas, draft.now)) {
    EndJob(*end, draft);
  } else {
    Continue(draft);
  }
}

}  // namespace

Verdict Decide(const api::TFJob& job, const Snapshot& snapshot, Time now,
               const DecisionOptions& options) {
  if (IsNotOurs(job)) return Ignore(job);
  Draft draft(job, snapshot, now, options);
  draft.verdict.gang = GangOf(job, options);
  draft.verdict.gang.native_version = NativeVersionOf(snapshot.native_version);
  draft.obstacle = ObstacleOf(draft.verdict.gang, snapshot);
  draft.waits_for_queue = WaitsForQueue(draft.verdict.gang, snapshot);
  HoldBackUnprotected(draft);
  HandleLostPods(draft);
  if (api::IsFinished(job.status)) {
    CleanUp(draft);
    return draft.Finish();
  }
  WriteCreated(draft);
  if (MustStandStill(job, snapshot)) {
    Suspend(draft);
  } else {
    Run(draft);
  }
  return draft.Finish();
}

Verdict Refuse(const api::TFJob& job, const Snapshot& snapshot, const Status& why, Time now,
               const DecisionOptions& options) {
  if (IsNotOurs(job)) return Ignore(job);
  Draft draft(job, snapshot, now, options);
  HandleLostPods(draft);
  if (api::IsFinished(job.status)) {
    CleanUp(draft);
  } else {
    WriteCreated(draft);
    EndJob({ConditionType::kFailed, api::kReasonFailedValidation,
            api::InvalidSpecMessage(job, Message(why)), objects::EventType::kWarning},
           draft);
  }
  return draft.Finish();
}

}  // namespace tfjob::policy
