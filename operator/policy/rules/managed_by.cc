#include "operator/policy/rules/managed_by.h"

namespace tfjob::policy {

bool IsManagedElsewhere(const api::TFJob& job) {
  const std::optional<std::string>& managed_by = job.spec.run_policy.managed_by;
  return managed_by.has_value() && *managed_by != kManagedByUs;
}

}  // namespace tfjob::policy
