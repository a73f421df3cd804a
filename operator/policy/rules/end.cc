#include "operator/policy/rules/end.h"

#include "operator/api/reasons.h"
#include "operator/policy/rules/backoff_limit.h"
#include "operator/policy/rules/deadline.h"
#include "operator/policy/rules/permanent_failure.h"
#include "operator/policy/rules/success.h"

namespace tfjob::policy {
namespace {

End Failed(std::string message, objects::EventType event_type = objects::EventType::kNormal) {
  return {api::ConditionType::kFailed, api::kReasonFailed, std::move(message), event_type};
}

}  // namespace

std::optional<End> FindEnd(const api::TFJob& job, const api::TFJobStatus& status,
                           const Replicas& replicas, Time now) {
  if (HasSucceeded(job, replicas)) {
    return End{api::ConditionType::kSucceeded, api::kReasonSucceeded, api::SucceededMessage(job)};
  }
  if (std::optional<PermanentFailure> failure = FindPermanentFailure(job, replicas)) {
    return Failed(std::move(failure->message), failure->event_type);
  }
  if (ExceedsBackoffLimit(job, status, replicas)) return Failed(api::BackoffLimitMessage(job));
  const std::optional<Duration> left = TimeToDeadline(job, status, now);
  if (left && *left <= Duration::zero()) return Failed(api::DeadlineMessage(job));
  return std::nullopt;
}

}  // namespace tfjob::policy
