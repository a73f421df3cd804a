#include "runtime/train/stop_budget.h"

#include <gtest/gtest.h>

namespace tfjob::train {
namespace {

TEST(StopBudget, FollowsTheGracePeriod) {
  const StopBudget usual = BudgetOf(30s);
  EXPECT_EQ(usual.answer, 5s);
  EXPECT_EQ(usual.serving, 20s);
  EXPECT_EQ(usual.process, 25s);
  const StopBudget large = BudgetOf(300s);
  EXPECT_EQ(large.answer, 5s);
  EXPECT_EQ(large.serving, 290s);
  EXPECT_EQ(large.process, 295s);
}

TEST(StopBudget, KeepsItsOrderWithinAnyPeriod) {
  for (const Duration grace : {Duration(1), Duration(500ms), Duration(1s), Duration(6s),
                               Duration(31s), Duration(24h * 365)}) {
    const StopBudget budget = BudgetOf(grace);
    EXPECT_GE(budget.answer, 0s);
    EXPECT_LE(budget.answer, budget.serving);
    EXPECT_LE(budget.serving, budget.process);
    EXPECT_LE(budget.process, grace);
  }
  EXPECT_EQ(BudgetOf(0s).process, 0s);
  EXPECT_EQ(BudgetOf(-5s).process, 0s);
}

}  // namespace
}  // namespace tfjob::train
