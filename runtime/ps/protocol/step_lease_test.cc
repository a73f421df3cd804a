// Tests that a worker that is connected but stuck loses its token, and contributes again when it
// recovers.
#include "runtime/ps/protocol/step_lease.h"

#include <gtest/gtest.h>

#include "runtime/ps/protocol/coordinator.h"

namespace tfjob::ps::protocol {
namespace {

TEST(StepLease, IsAMultipleOfTheMedianStepButAtLeastTheLeast) {
  StepLease lease({.factor = 10, .least = 60s});
  lease.Observe(0s, 100);
  EXPECT_EQ(lease.Length(), 60s) << "no step was measured yet";
  lease.Observe(40s, 101);
  EXPECT_EQ(lease.Length(), 400s);
  // Four steps took 2 s each, so the single slow step no longer matters.
  lease.Observe(48s, 105);
  EXPECT_EQ(lease.Length(), 60s);
  for (int step = 106; step < 140; ++step) lease.Observe(48s + 8s * (step - 105), step);
  EXPECT_EQ(lease.Length(), 80s) << "only the last steps count";
}

TEST(StepLease, StartsAgainAfterARollback) {
  StepLease lease({.factor = 2, .least = 1s});
  lease.Observe(0s, 50);
  lease.Observe(600s, 10);  // a rollback does not count as a step
  EXPECT_EQ(lease.Length(), 1s);
  lease.Observe(603s, 11);
  EXPECT_EQ(lease.Length(), 6s);
}

TEST(StepLease, IsAMultipleOfTheShortestStepAtFirst) {
  StepLease lease({.factor = 10, .least = 1s});
  lease.Observe(0s, 0);
  lease.Observe(100s, 1);
  lease.Observe(103s, 2);
  lease.Observe(203s, 3);
  EXPECT_EQ(lease.Length(), 30s);
}

TEST(StepLease, LeavesOutStepsThatWereHeldUp) {
  StepLease lease({.factor = 10, .least = 1s});
  lease.Observe(0s, 1);
  lease.Discount();
  lease.Observe(600s, 2);
  EXPECT_EQ(lease.Length(), 1s);
  lease.Observe(602s, 3);
  EXPECT_EQ(lease.Length(), 20s);
}

TEST(StepLease, EndsNeverWithTheFactorZeroAndDoesNotOverflow) {
  EXPECT_EQ(StepLease({.factor = 0, .least = 1s}).Length(), std::nullopt);
  StepLease lease({.factor = 1e300, .least = 1s});
  lease.Observe(0s, 0);
  lease.Observe(24h * 365, 1);
  EXPECT_GT(*lease.Length(), 24h * 365);
}

const Worker kA{"worker", 0}, kB{"worker", 1}, kC{"worker", 2}, kLate{"worker", 3};
Name Of(const Worker& worker, uint64_t sequence) {
  return {worker, 1, sequence};
}

// Tests one server with the state of epoch 1, step 5, and three workers, each of which contributes
// once per step. The lease is 10 s.
class TokenTest : public testing::Test {
 protected:
  explicit TokenTest(std::vector<Worker> awaited = {}) {
    coordinator_.Gather(std::move(awaited), now_ + 600s);
    coordinator_.Fill(1, 5, 3);
    coordinator_.OnMessage(0, Hello{10, 1, 5});
    for (const Worker& worker : {kA, kB, kC}) coordinator_.Join(worker, 1);
  }
  // Lets the first bytes of a contribution arrive, and then the remaining bytes.
  CoordinatorActions Send(const Worker& worker, uint64_t sequence, int64_t step = 5) {
    CoordinatorActions actions = coordinator_.Join(worker, 1);
    CoordinatorActions staged =
        coordinator_.OnMessage(0, StagedReport{1, step, Of(worker, sequence)});
    staged.returned.insert(staged.returned.end(), actions.returned.begin(), actions.returned.end());
    return staged;
  }
  // Advances the time by ticks of 1 s and returns the actions of the last tick.
  CoordinatorActions Pass(int seconds) {
    CoordinatorActions actions;
    for (; seconds > 0; --seconds) actions = coordinator_.Tick(now_ += 1s);
    return actions;
  }

  Duration now_{100s};
  Coordinator coordinator_{1, {.factor = 3, .least = 10s}};
};

TEST_F(TokenTest, OfAStuckWorkerPassesToTheOneThatHasWaitedLongest) {
  Send(kB, 1);
  Send(kA, 1);
  EXPECT_TRUE(Pass(10).lapses.empty());
  EXPECT_EQ(coordinator_.Awaited(), std::vector{kC});
  const CoordinatorActions actions = Pass(1);
  EXPECT_EQ(actions.lapses, (std::vector<Lapse>{{kC, 10s}}));
  EXPECT_EQ(actions.again, (std::vector<Again>{{kB, 1, 1, 5}}));
  EXPECT_EQ(coordinator_.Awaited(), std::vector{kB});
  Send(kB, 2);
  EXPECT_EQ(coordinator_.step(), 6);
}

TEST_F(TokenTest, IsNotAskedForAgainWhileTheWorkerIsStuck) {
  Send(kA, 1);
  Send(kB, 1);
  Pass(11);
  Send(kA, 2);
  ASSERT_EQ(coordinator_.step(), 6);
  coordinator_.OnMessage(0, AppliedReport{1, 6});
  // The next step does not wait for the stuck worker.
  EXPECT_EQ(Send(kB, 2, 6).again, (std::vector<Again>{{kB, 1, 2, 6}}));
  Send(kA, 3, 6);
  for (int second = 0; second < 60; ++second) {
    for (const Lapse& lapse : Pass(1).lapses) EXPECT_EQ(lapse.worker, kB) << "C lapsed already";
  }
}

TEST_F(TokenTest, ReturnsToTheWorkerWhenItSendsAnything) {
  Send(kA, 1);
  Send(kB, 1);
  Pass(11);
  Send(kA, 2);
  ASSERT_EQ(coordinator_.step(), 6);
  coordinator_.OnMessage(0, AppliedReport{1, 6});
  // The worker's contribution to step 5 is too late, so the coordinator requests a contribution to
  // step 6.
  EXPECT_EQ(Send(kC, 1, 5).returned, std::vector{kC});
  Send(kA, 3, 6);
  EXPECT_TRUE(Send(kB, 2, 6).again.empty()) << "C is expected to contribute";
  EXPECT_EQ(coordinator_.Awaited(), std::vector{kC});
  Send(kC, 2, 6);
  EXPECT_EQ(coordinator_.step(), 7);
}

TEST_F(TokenTest, IsKeptWhileNobodyWaitsForTheWorker) {
  EXPECT_TRUE(Pass(1000).lapses.empty());  // all members are computing
  Send(kA, 1);
  EXPECT_TRUE(Pass(10).lapses.empty()) << "the lease begins when the first one waits";
  EXPECT_EQ(Pass(1).lapses.size(), 2u);
}

TEST_F(TokenTest, IsKeptDuringAHold) {
  Send(kA, 1);
  Send(kB, 1);
  coordinator_.Hold(now_, kC);
  for (int minute = 0; minute < 10; ++minute) {
    EXPECT_TRUE(Pass(30).lapses.empty());
    coordinator_.Renew(now_, kC);
  }
  coordinator_.Release(kC);
  EXPECT_TRUE(Pass(10).lapses.empty()) << "the lease begins after the hold";
  EXPECT_EQ(Pass(1).lapses.size(), 1u);
}

class GatheringTest : public TokenTest {
 protected:
  GatheringTest() : TokenTest({kA, kB, kC, kLate}) {}
};

TEST_F(GatheringTest, PausesTheLease) {
  Send(kA, 1);
  Send(kB, 1);
  EXPECT_TRUE(Pass(300).lapses.empty()) << "C waits for the one that is late, too";
  coordinator_.Join(kLate, 1);
  EXPECT_TRUE(Pass(10).lapses.empty()) << "the lease begins when all have joined";
  EXPECT_EQ(Pass(1).lapses.size(), 2u);
}

TEST_F(TokenTest, IsKeptByASlowWorkerThatContributesToEveryStep) {
  uint64_t sequence = 0;
  for (int64_t step = 5; step < 25; ++step) {
    ++sequence;
    Send(kA, sequence, step);
    Send(kB, sequence, step);
    EXPECT_TRUE(Pass(9).lapses.empty());
    Send(kC, sequence, step);
    coordinator_.OnMessage(0, AppliedReport{1, step + 1});
  }
  EXPECT_EQ(coordinator_.step(), 25);
  // A step takes 9 s, so the lease is now 27 s.
  Send(kA, ++sequence, 25);
  EXPECT_TRUE(Pass(27).lapses.empty());
  EXPECT_EQ(Pass(1).lapses.size(), 2u);
}

TEST_F(TokenTest, IsNotRestoredByReportsOfWhatTheWorkerSentBefore) {
  // C is stuck with the second batch that was requested from it.
  coordinator_.Leave(kB, 1);
  Send(kC, 1);
  Send(kA, 1);  // C has waited longest
  EXPECT_EQ(Pass(11).lapses, (std::vector<Lapse>{{kC, 10s}}));
  EXPECT_TRUE(coordinator_.OnMessage(0, StagedReport{1, 5, Of(kC, 1)}).returned.empty());
  Send(kA, 2);
  EXPECT_EQ(coordinator_.step(), 6);
}

TEST_F(TokenTest, OfAStuckWorkerComesBackWithItsSuccessor) {
  Send(kA, 1);
  Send(kB, 1);
  Pass(11);
  EXPECT_EQ(coordinator_.Join(kC, 2).returned, std::vector{kC});
  EXPECT_TRUE(Send(kA, 2).again.empty());
}

}  // namespace
}  // namespace tfjob::ps::protocol
