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

TEST(ScopedStopOnSignals, LeavesTheProcessAsItWas) {
  static StopSource stop;
  struct sigaction before = {};
  const auto own = [](int) {};
  signal(SIGINT, own);
  {
    const ScopedStopOnSignals scoped(stop);
    sigaction(SIGINT, nullptr, &before);
    EXPECT_EQ(before.sa_handler, static_cast<void (*)(int)>(own)) << "the program handles SIGINT";
    raise(SIGTERM);
    EXPECT_EQ(stop.signal(), SIGTERM);
  }
  sigaction(SIGTERM, nullptr, &before);
  EXPECT_EQ(before.sa_handler, SIG_DFL);
  sigaction(SIGINT, nullptr, &before);
  EXPECT_EQ(before.sa_handler, static_cast<void (*)(int)>(own));
  signal(SIGINT, SIG_DFL);
}

TEST(ExitCode, SaysWhetherARetryMayHelp) {
  StopSource stop;
  EXPECT_EQ(ExitCode(OkStatus(), stop), 0);
  EXPECT_EQ(ExitCode(InvalidArgument("x"), stop), 2);
  EXPECT_EQ(ExitCode(Unavailable("x"), stop), 138);
  EXPECT_EQ(ExitCode(ResourceExhausted("x"), stop), 138);
  EXPECT_EQ(ExitCode(Internal("x"), stop), 1);
  EXPECT_EQ(ExitCode(Cancelled("x"), stop), 1);
  stop.Request(SIGTERM);
  EXPECT_EQ(ExitCode(Cancelled("x"), stop), 128 + SIGTERM);
  EXPECT_EQ(ExitCode(InvalidArgument("x"), stop), 2);
}

}  // namespace
}  // namespace tfjob
