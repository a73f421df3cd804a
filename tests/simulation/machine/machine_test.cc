#include "tests/simulation/machine/machine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"

namespace tfjob::simulation {
namespace {

TEST(Machine, TimePassesWhileAllThreadsWait) {
  Machine machine(1);
  Duration woken{0};
  machine.Spawn(1, [&] {
    Mutex mutex;
    CondVar never;
    MutexLock lock(mutex);
    EXPECT_FALSE(never.WaitFor(mutex, 1h));
    woken = RealClock().Monotonic();
  });
  ASSERT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 2h));
  EXPECT_GE(woken, 1h);
  EXPECT_LT(woken, 1h + 1ms);
}

TEST(Machine, StopsAtItsLimit) {
  Machine machine(1);
  bool stop = false;
  Mutex mutex;
  CondVar changed;
  machine.Spawn(1, [&] {
    MutexLock lock(mutex);
    while (!stop) changed.WaitFor(mutex, 1s);
  });
  EXPECT_FALSE(machine.RunUntil([&] { return machine.idle(); }, 1min));
  EXPECT_GE(machine.elapsed(), 59s);
  stop = true;
  EXPECT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 1min));
}

TEST(Machine, ReportsThatAllThreadsWaitForever) {
  Machine machine(1);
  Mutex mutex;
  CondVar changed;
  bool stop = false;
  machine.Spawn(1, [&] {
    MutexLock lock(mutex);
    while (!stop) changed.Wait(mutex);
  });
  EXPECT_FALSE(machine.RunUntil([&] { return machine.idle(); }, 1h));
  EXPECT_LT(machine.elapsed(), 1s);
  machine.Spawn(1, [&] {
    MutexLock lock(mutex);
    stop = true;
    changed.NotifyAll();
  });
  EXPECT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 1h));
}

// Returns the numbers that three threads append. Each thread appends its own number ten times, and
// releases the lock in between.
std::string Interleaving(uint64_t seed, uint64_t* fingerprint = nullptr) {
  Machine machine(seed, 0.3);
  std::string order;
  machine.Spawn(1, [&] {
    Mutex mutex;
    std::vector<Thread> threads;
    for (char name : {'a', 'b', 'c'}) {
      threads.emplace_back("append", [&, name] {
        for (int i = 0; i < 10; ++i) {
          MutexLock lock(mutex);
          order += name;
        }
      });
    }
    for (Thread& thread : threads) thread.Join();
  });
  EXPECT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 1h));
  EXPECT_EQ(order.size(), 30u);
  if (fingerprint != nullptr) *fingerprint = machine.fingerprint();
  return order;
}

TEST(Machine, SeedDeterminesTheOrder) {
  uint64_t first = 0, second = 0;
  EXPECT_EQ(Interleaving(7, &first), Interleaving(7, &second));
  EXPECT_EQ(first, second);
  EXPECT_NE(Interleaving(7), Interleaving(8));
}

// A lost update proves that threads are interrupted between a read and a write.
TEST(Machine, FindsARaceInSomeSeed) {
  bool lost = false;
  for (uint64_t seed = 1; seed <= 50 && !lost; ++seed) {
    Machine machine(seed, 0.3);
    int count = 0;
    Mutex mutex;
    for (int i = 0; i < 2; ++i) {
      machine.Spawn(1, [&] {
        int seen = 0;
        {
          MutexLock lock(mutex);
          seen = count;
        }
        MutexLock lock(mutex);
        count = seen + 1;
      });
    }
    EXPECT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 1h));
    lost = count == 1;
  }
  EXPECT_TRUE(lost);
}

TEST(Machine, PausedProcessDoesNotRun) {
  Machine machine(1);
  Duration first{0}, second{0};
  machine.Spawn(1, [&] {
    machine.Sleep(1s);
    first = machine.elapsed();
  });
  machine.Spawn(2, [&] {
    machine.Sleep(1s);
    second = machine.elapsed();
  });
  machine.Pause(1, 30s);
  ASSERT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 1h));
  EXPECT_GE(first, 30s);
  EXPECT_LT(second, 2s);
}

TEST(Machine, WallClocksDiffer) {
  Machine machine(1);
  machine.SetSkew(2, 5min);
  Time here, there;
  machine.Spawn(1, [&] { here = RealClock().Now(); });
  machine.Spawn(2, [&] { there = RealClock().Now(); });
  ASSERT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 1h));
  EXPECT_NEAR(static_cast<double>((there - here).count()), 300e6, 1e3);
}

TEST(Machine, NotifyOneWakesOneThread) {
  Machine machine(3);
  Mutex mutex;
  CondVar changed;
  int woken = 0;
  for (int i = 0; i < 3; ++i) {
    machine.Spawn(1, [&] {
      MutexLock lock(mutex);
      changed.Wait(mutex);
      ++woken;
    });
  }
  machine.After(1s, [&] { machine.Spawn(1, [&] { changed.NotifyOne(); }); });
  EXPECT_FALSE(machine.RunUntil([&] { return machine.idle(); }, 1min));
  EXPECT_EQ(woken, 1);
  machine.Spawn(1, [&] { changed.NotifyAll(); });
  EXPECT_TRUE(machine.RunUntil([&] { return machine.idle(); }, 1min));
  EXPECT_EQ(woken, 3);
}

}  // namespace
}  // namespace tfjob::simulation
