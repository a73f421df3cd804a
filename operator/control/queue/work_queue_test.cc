#include "operator/control/queue/work_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/base/fake_clock.h"

namespace tfjob::control {
namespace {

class WorkQueueTest : public ::testing::Test {
 protected:
  FakeClock clock_{Time()};
  WorkQueue queue_{clock_};
};

TEST_F(WorkQueueTest, GivesKeysInOrderAndEachOnce) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryGet(), "a");
  EXPECT_EQ(queue_.TryGet(), "b");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, AKeyAddedDuringItsWorkComesAgainAfterIt) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryGet(), "a");
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, OfTwoDelaysTheEarlierStays) {
  queue_.AddAfter("a", 10s);
  queue_.AddAfter("a", 3s);
  queue_.AddAfter("a", 5s);
  EXPECT_EQ(queue_.NextTimer(), Duration(3s));
  clock_.Advance(3s);
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.Done("a");
  clock_.Advance(1h);
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  EXPECT_EQ(queue_.NextTimer(), std::nullopt);
}

TEST_F(WorkQueueTest, BacksOffAKeyThatFailsUntilItSucceeds) {
  queue_.AddBackedOff("a");
  EXPECT_EQ(queue_.NextTimer(), Duration(5ms));
  clock_.Advance(5ms);
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.AddBackedOff("a");
  EXPECT_EQ(queue_.NextTimer(), Duration(10ms));
  queue_.Done("a");
  queue_.AddBackedOff("b");
  EXPECT_EQ(queue_.NextTimer(), Duration(5ms));
  clock_.Advance(10ms);
  EXPECT_EQ(queue_.TryGet(), "b");
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.Forget("a");
  queue_.AddBackedOff("a");
  EXPECT_EQ(queue_.NextTimer(), Duration(5ms));
}

// If the server is slow, the many calls for one key take a long time, but the worker must not count
// as stuck.
TEST_F(WorkQueueTest, ACompletedCallShowsThatAWorkerIsNotStuck) {
  queue_.Add("a");
  queue_.Add("b");
  ASSERT_EQ(queue_.TryGet(), "a");
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(1min);
    queue_.RecordProgress("a");
  }
  ASSERT_EQ(queue_.TryGet(), "b");
  clock_.Advance(2min);
  queue_.RecordProgress("b");
  queue_.RecordProgress("unknown");
  EXPECT_EQ(queue_.Count().longest_call, Duration(2min));
  EXPECT_EQ(queue_.Count().longest, Duration(32min));
  queue_.Done("a");
  EXPECT_EQ(queue_.Count().longest_call, Duration(0));
}

// Calls that hang in one namespace must not hold up all workers.
TEST(WorkQueue, GivesANamespaceOnlyItsShareOfTheWorkers) {
  FakeClock clock{Time()};
  WorkQueue queue(clock, {}, NoObserver(), 2);
  for (const char* key : {"a/1", "a/2", "a/3", "a/4", "b/1"}) queue.Add(key);
  EXPECT_EQ(queue.TryGet(), "a/1");
  EXPECT_EQ(queue.TryGet(), "b/1");
  EXPECT_EQ(queue.TryGet(), "a/2");
  EXPECT_EQ(queue.TryGet(), std::nullopt);
  EXPECT_EQ(queue.Count().depth, 2);
  queue.Add("b/2", Urgency::kListed);
  EXPECT_EQ(queue.TryGet(), "b/2");
  queue.Done("a/2");
  EXPECT_EQ(queue.TryGet(), "a/3");
  EXPECT_EQ(queue.TryGet(), std::nullopt);
  queue.Add("a/1");  // again, once its work is done
  queue.Done("a/1");
  EXPECT_EQ(queue.TryGet(), "a/4");
  queue.Done("a/3");
  EXPECT_EQ(queue.TryGet(), "a/1");
}

// Two keys are delayed. The worker that slept until the first key was due is busy with that key, so
// another worker must process the second key on time.
TEST(WorkQueue, AnotherWorkerWakesForTheNextDelayedKey) {
  WorkQueue queue(RealClock());
  Mutex mutex;
  CondVar changed;
  std::set<std::string> begun;
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  const auto work = [&] {
    while (std::optional<std::string> key = queue.Get()) {
      {
        MutexLock lock(mutex);
        begun.insert(*key);
        changed.NotifyAll();
        // The worker stays busy until this many keys have been taken.
        const size_t all = key->starts_with("warm") ? 2 : 4;
        while (begun.size() < all && changed.WaitUntil(mutex, deadline)) {
        }
      }
      queue.Done(*key);
    }
  };
  std::thread one(work), two(work);
  queue.Add("warm-1");
  queue.Add("warm-2");
  {
    MutexLock lock(mutex);
    while (begun.size() < 2 && changed.WaitUntil(mutex, deadline)) {
    }
  }
  queue.AddAfter("first", 50ms);
  queue.AddAfter("second", 60ms);
  {
    MutexLock lock(mutex);
    while (begun.size() < 4 && changed.WaitUntil(mutex, deadline)) {
    }
    EXPECT_EQ(begun.size(), 4u);
  }
  queue.ShutDown();
  one.join();
  two.join();
}

TEST(WorkQueue, NeverGivesAKeyToTwoWorkersAndStopsPromptly) {
  WorkQueue queue(RealClock());
  Mutex mutex;
  std::set<std::string> busy;
  int worked = 0;
  bool doubled = false;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (std::optional<std::string> key = queue.Get()) {
        {
          MutexLock lock(mutex);
          doubled |= !busy.insert(*key).second;
        }
        std::this_thread::yield();
        {
          MutexLock lock(mutex);
          busy.erase(*key);
          ++worked;
        }
        queue.Done(*key);
      }
    });
  }
  for (int i = 0; i < 2000; ++i) queue.Add(i % 2 == 0 ? "even" : "odd");
  queue.AddAfter("late", 1ms);
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  auto all_worked = [&] {
    MutexLock lock(mutex);
    return worked >= 3;  // "even", "odd" and "late", each at least once
  };
  while (!all_worked() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(all_worked());
  queue.ShutDown();
  for (std::thread& worker : workers) worker.join();
  EXPECT_FALSE(doubled);
  EXPECT_EQ(queue.Get(), std::nullopt);
}

}  // namespace
}  // namespace tfjob::control
