#include "runtime/train/stop_budget.h"

#include <algorithm>

namespace tfjob::train {

StopBudget BudgetOf(Duration grace_period) {
  const Duration grace = std::max(grace_period, Duration(0));
  return {.answer = std::min<Duration>(5s, grace / 6),
          .serving = grace - std::min<Duration>(10s, grace / 3),
          .process = grace - std::min<Duration>(5s, grace / 6)};
}

}  // namespace tfjob::train
