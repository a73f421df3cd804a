#include "operator/policy/rules/ttl.h"

#include "operator/api/conditions.h"
#include "operator/policy/facts/decision_options.h"

namespace tfjob::policy {
namespace {

std::optional<Time> EndOf(const api::TFJobStatus& status) {
  if (status.completion_time) return status.completion_time;
  for (const api::Condition& condition : status.conditions) {
    const bool end = condition.type == api::ConditionType::kSucceeded ||
                     condition.type == api::ConditionType::kFailed;
    if (end && condition.status) return condition.last_transition_time;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Duration> TimeToLive(const api::TFJob& job, const api::TFJobStatus& status,
                                   Time now) {
  const std::optional<int32_t>& ttl = job.spec.run_policy.ttl_seconds_after_finished;
  if (job.spec.run_policy.suspend) return std::nullopt;
  // Keep a job with a negative TTL, which fails validation, so that users can see why it failed.
  if (!ttl || *ttl < 0 || !api::IsFinished(status)) return std::nullopt;
  return *EndOf(status) + Seconds(*ttl) - now;
}

}  // namespace tfjob::policy
