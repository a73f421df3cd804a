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

TEST(StopSource, AWaiterAlsoWakesForAnEvent) {
  StopSource stop;
  Event event;
  std::thread setter([&] { event.Set(); });
  EXPECT_FALSE(stop.WaitFor(60s, event));
  setter.join();
  EXPECT_FALSE(stop.WaitFor(60s, event)) << "an event stays set";
  event.WaitFor(60s);
  event.Clear();
  const auto start = std::chrono::steady_clock::now();
  event.WaitFor(10ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 10ms);
  stop.Request(SIGTERM);
  EXPECT_TRUE(stop.WaitFor(60s, event));
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
