#include "runtime/base/stop.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
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

using Handler = void (*)(int);

Handler ActionOf(int number) {
  struct sigaction action = {};
  sigaction(number, nullptr, &action);
  return action.sa_handler;
}

TEST(ScopedStopOnSignals, LeavesTheProcessAsItWas) {
  const Handler own = [](int) {};
  signal(SIGINT, own);
  {
    const ScopedStopOnSignals scoped;
    EXPECT_EQ(ActionOf(SIGINT), own) << "the program handles SIGINT";
    raise(SIGTERM);
    EXPECT_EQ(scoped.source().signal(), SIGTERM);
    EXPECT_EQ(LastStopSignal(), SIGTERM);
  }
  EXPECT_EQ(ActionOf(SIGTERM), SIG_DFL);
  EXPECT_EQ(ActionOf(SIGINT), own);
  signal(SIGINT, SIG_DFL);
}

TEST(ScopedStopOnSignals, EveryObjectBeginsWithoutARequest) {
  {
    const ScopedStopOnSignals scoped;
    raise(SIGTERM);
    EXPECT_TRUE(scoped.source().requested());
  }
  const ScopedStopOnSignals scoped;
  EXPECT_FALSE(scoped.source().requested());
  raise(SIGTERM);
  EXPECT_TRUE(scoped.source().requested());
}

TEST(ScopedStopOnSignals, ASignalStopsAllObjectsAndTheLastOneRestoresTheAction) {
  auto first = std::make_unique<ScopedStopOnSignals>();
  const ScopedStopOnSignals second;
  first.reset();
  EXPECT_NE(ActionOf(SIGTERM), SIG_DFL) << "the second one still needs the handler";
  const ScopedStopOnSignals third;
  raise(SIGTERM);
  EXPECT_TRUE(second.source().requested());
  EXPECT_TRUE(third.source().requested());
}

TEST(ScopedStopOnSignals, KeepsAHandlerThatTheProgramHasSetMeanwhile) {
  const Handler own = [](int) {};
  {
    const ScopedStopOnSignals scoped;
    signal(SIGTERM, own);
  }
  EXPECT_EQ(ActionOf(SIGTERM), own);
  signal(SIGTERM, SIG_DFL);
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
