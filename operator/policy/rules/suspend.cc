#include "operator/policy/rules/suspend.h"

#include "operator/api/conditions.h"
#include "operator/api/reasons.h"
#include "operator/policy/rules/restarts.h"

namespace tfjob::policy {

using api::ConditionType;

bool MustStandStill(const api::TFJob& job, const Snapshot& snapshot) {
  if (job.spec.run_policy.suspend) return true;
  return api::IsTrue(job.status, ConditionType::kSuspended) && !snapshot.pods.empty();
}

bool WriteSuspended(const api::TFJob& job, Time now, api::TFJobStatus& status) {
  const std::string message = api::SuspendedMessage(job);
  if (api::IsTrue(status, ConditionType::kRunning)) {
    api::SetCondition(status, ConditionType::kRunning, false, api::kReasonSuspended, message, now);
  }
  return api::SetCondition(status, ConditionType::kSuspended, true, api::kReasonSuspended, message,
                           now);
}

bool WriteResumed(const api::TFJob& job, Time now, api::TFJobStatus& status) {
  if (!api::IsTrue(status, ConditionType::kSuspended)) return false;
  api::SetCondition(status, ConditionType::kSuspended, false, api::kReasonResumed,
                    api::ResumedMessage(job), now);
  status.start_time = TruncateToSeconds(now);
  ForgetCompleted(status);
  return true;
}

}  // namespace tfjob::policy
