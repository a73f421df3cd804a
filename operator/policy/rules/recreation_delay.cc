#include "operator/policy/rules/recreation_delay.h"

#include <algorithm>

namespace tfjob::policy {

Duration RecreationDelay(int32_t recreations, const DecisionOptions& options) {
  if (recreations <= 0) return Duration::zero();
  Duration delay = options.restart_delay;
  for (int32_t i = 1; i < recreations && delay < options.restart_delay_maximum; ++i) delay *= 2;
  return std::min(delay, options.restart_delay_maximum);
}

std::optional<Duration> NotBefore(const IndexHistory* index, const DecisionOptions& options) {
  if (index == nullptr || !index->lost_at) return std::nullopt;
  return *index->lost_at + RecreationDelay(index->recreations, options);
}

}  // namespace tfjob::policy
