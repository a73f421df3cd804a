#include "operator/policy/rules/deadline.h"

#include "operator/policy/facts/decision_options.h"

namespace tfjob::policy {

std::optional<Duration> TimeToDeadline(const api::TFJob& job, const api::TFJobStatus& status,
                                       Time now) {
  const std::optional<int64_t>& deadline = job.spec.run_policy.active_deadline_seconds;
  if (!deadline || !status.start_time) return std::nullopt;
  return *status.start_time + Seconds(*deadline) - now;
}

}  // namespace tfjob::policy
