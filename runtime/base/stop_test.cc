#include "runtime/base/stop.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

namespace tfjob {
namespace {

TEST(StopSource, WakesAWaiterAndKeepsTheFirstReason) {
  StopSource stop;
  EXPECT_FALSE(stop.WaitFor(0ms));
  std::thread asker([&] { stop.Request(SIGTERM); });
  EXPECT_TRUE(stop.WaitFor(60s));
  asker.join();
  stop.Request(SIGINT);
  EXPECT_EQ(stop.signal(), SIGTERM);
}

TEST(StopOnSignals, TurnsTheFirstSignalIntoARequest) {
  static StopSource stop;
  StopOnSignals(stop);
  raise(SIGTERM);
  EXPECT_TRUE(stop.WaitFor(60s));
  EXPECT_EQ(stop.signal(), SIGTERM);
  signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace tfjob
