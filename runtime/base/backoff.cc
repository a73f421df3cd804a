#include "runtime/base/backoff.h"

#include <algorithm>
#include <cmath>

namespace tfjob {

Duration BackoffDelay(const BackoffPolicy& policy, int failures) {
  return BackoffDelay(policy, failures, 0.0);
}

Duration BackoffDelay(const BackoffPolicy& policy, int failures, double uniform) {
  if (failures <= 0) return Duration(0);
  const double limit = static_cast<double>(policy.maximum.count());
  const double raw =
      static_cast<double>(policy.initial.count()) * std::pow(policy.factor, failures - 1);
  const double delay = std::min(raw, limit) * (1.0 + policy.jitter * uniform);
  return Duration(static_cast<int64_t>(delay));
}

}  // namespace tfjob
