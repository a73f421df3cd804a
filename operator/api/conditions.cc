#include "operator/api/conditions.h"

#include <utility>

namespace tfjob::api {
namespace {

bool Replaces(ConditionType added, ConditionType present) {
  if (added == present) return true;
  return (added == ConditionType::kRestarting && present == ConditionType::kRunning) ||
         (added == ConditionType::kRunning && present == ConditionType::kRestarting);
}

bool IsEnd(ConditionType type) {
  return type == ConditionType::kSucceeded || type == ConditionType::kFailed;
}

}  // namespace

const Condition* Find(const TFJobStatus& status, ConditionType type) {
  for (const Condition& condition : status.conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

bool IsTrue(const TFJobStatus& status, ConditionType type) {
  for (const Condition& condition : status.conditions) {
    if (condition.type == type && condition.status) return true;
  }
  return false;
}

bool IsSucceeded(const TFJobStatus& status) {
  return IsTrue(status, ConditionType::kSucceeded);
}
bool IsFailed(const TFJobStatus& status) {
  return IsTrue(status, ConditionType::kFailed);
}
bool IsFinished(const TFJobStatus& status) {
  return IsSucceeded(status) || IsFailed(status);
}

bool SetCondition(TFJobStatus& status, ConditionType type, bool value, std::string_view reason,
                  std::string_view message, Time now) {
  if (IsFinished(status)) return false;
  const Time second = TruncateToSeconds(now);
  Condition added{type, value, std::string(reason), std::string(message), second, second};
  if (const Condition* present = Find(status, type); present && present->status == value) {
    if (present->reason == reason) return false;
    added.last_transition_time = present->last_transition_time;
  }
  std::vector<Condition> conditions;
  for (Condition& condition : status.conditions) {
    if (Replaces(type, condition.type)) continue;
    if (IsEnd(type) && condition.type == ConditionType::kRunning) condition.status = false;
    conditions.push_back(std::move(condition));
  }
  conditions.push_back(std::move(added));
  status.conditions = std::move(conditions);
  return true;
}

}  // namespace tfjob::api
