#include "operator/policy/refusal.h"

#include "operator/api/conditions.h"
#include "operator/api/reasons.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/rules/running.h"

namespace tfjob::policy {

using api::ConditionType;

void WriteRefusal(Draft& draft) {
  const api::TFJobStatus& status = draft.status();
  const bool waits_at_first =
      !status.conditions.empty() && status.conditions.back().type == ConditionType::kCreated;
  if (!waits_at_first || draft.history() == nullptr) return;
  const std::string& refusal = draft.obstacle.empty() ? draft.history()->refusal : draft.obstacle;
  const bool runs = DriverRuns(draft.replicas);
  if (!refusal.empty() && !runs) {
    api::SetCondition(draft.status(), ConditionType::kCreated, true, api::kReasonFailedCreatePod,
                      api::RefusedMessage(draft.job, refusal), draft.now);
  } else if (status.conditions.back().reason == api::kReasonFailedCreatePod &&
             (runs || ReplacementsExist(draft.job, draft.replicas, draft.history()))) {
    api::SetCondition(draft.status(), ConditionType::kCreated, true, api::kReasonCreated,
                      api::CreatedMessage(draft.job), draft.now);
  }
}

}  // namespace tfjob::policy
