#include "runtime/ps/rate_record.h"

#include <gtest/gtest.h>

#include <limits>

namespace tfjob::ps {
namespace {

TEST(RateRecord, IsTakenOutOfTheLedgerBitForBit) {
  const state::LearningRate rate{.rate = 0.1 * 0.1, .step = 42};
  std::string ledger = "0 worker 1 7 9\n" + RateRecord(rate) + "-3 worker 1 0 12\n";
  EXPECT_EQ(TakeRate(ledger), rate);
  EXPECT_EQ(ledger, "0 worker 1 7 9\n-3 worker 1 0 12\n");
  EXPECT_EQ(TakeRate(ledger), std::nullopt);
  EXPECT_EQ(ledger, "0 worker 1 7 9\n-3 worker 1 0 12\n");
}

TEST(RateRecord, OfOtherPeersMayBeDamaged) {
  for (const std::string& line :
       {std::string("-4 rate 0 5\n"), std::string("-4 rate 0 -1 0\n"), std::string("-4 x\n"),
        RateRecord({.rate = -1, .step = 1}),
        RateRecord({.rate = std::numeric_limits<double>::quiet_NaN(), .step = 1})}) {
    std::string ledger = line + "-1 chief 0 1 1\n";
    EXPECT_EQ(TakeRate(ledger), std::nullopt) << line;
    EXPECT_EQ(ledger, "-1 chief 0 1 1\n");
  }
}

}  // namespace
}  // namespace tfjob::ps
