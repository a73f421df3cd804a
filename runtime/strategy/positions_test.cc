#include "runtime/strategy/positions.h"

#include <gtest/gtest.h>

#include "runtime/base/status.h"

namespace tfjob::strategy {
namespace {

const std::vector<state::TaskId> kTasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}};

TEST(Positions, OfOneTaskAreDealtOutToSeveral) {
  std::string ledger = StrCat("0 chief 0 5 20\n", PositionRecord({"chief", 0}, 22));
  EXPECT_EQ(DealOut(kTasks, ledger), 7);
  EXPECT_EQ(ledger, "0 chief 0 5 20\n-3 chief 0 0 7\n-3 worker 0 0 7\n-3 worker 1 0 7\n");
  EXPECT_EQ(DealOut(kTasks, ledger), std::nullopt) << "each task has its own";
}

TEST(Positions, StayIfThereIsNothingToDealOut) {
  const std::string several = "-3 chief 0 0 30\n-3 worker 0 0 28\n";
  const std::string impossible = "-3 chief 0 0 -1\n";
  for (const std::string& ledger : {std::string(), several, impossible, std::string("who\nwhat")}) {
    std::string same = ledger;
    EXPECT_EQ(DealOut(kTasks, same), std::nullopt);
    EXPECT_EQ(same, ledger);
  }
  std::string alone = PositionRecord({"chief", 0}, 22);
  EXPECT_EQ(DealOut({{"chief", 0}}, alone), std::nullopt);
  EXPECT_EQ(DealOut({}, alone), std::nullopt) << "the tasks are unknown";
  EXPECT_EQ(OnlyPosition(alone), 22);
}

}  // namespace
}  // namespace tfjob::strategy
