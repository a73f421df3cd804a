// Tests groups that continue without lost tasks, with real servers and sockets on loopback.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "runtime/collectives/endpoint/endpoint.h"
#include "runtime/collectives/endpoint/test_tasks.h"
#include "runtime/wire/test_connections.h"

namespace tfjob::collectives {
namespace {

class ShrinkingGroupTest : public SocketGroupTest {
 protected:
  void SetUp() override {
    shrinks_ = true;
    SocketGroupTest::SetUp();
  }
  // Starts worker 0, and lets the others train until it joins them.
  void ReplaceWorker0() {
    Start(1);
    std::thread replacement([this] { EXPECT_EQ(At(1).Join(-1), OkStatus()); });
    // The generation lasts until its members leave it.
    const auto deadline = SteadyNow() + 20s;
    while (!At(0).group().TaskWaits() && SteadyNow() < deadline) {
      std::thread other([this] { EXPECT_EQ(Sum(At(2)), OkStatus()); });
      EXPECT_EQ(Sum(At(0)), OkStatus());
      other.join();
    }
    std::thread other([this] { EXPECT_EQ(At(2).Join(7), OkStatus()); });
    EXPECT_EQ(At(0).Join(7), OkStatus());
    other.join();
    replacement.join();
    EXPECT_EQ(At(1).generation().members.size(), 3u);
    ExpectSum();
  }
};

TEST_F(ShrinkingGroupTest, GoesOnWithoutALostTaskUntilItsReplacementJoins) {
  JoinAll();
  ExpectSum();
  running_[1].reset();
  (void)All(Sum);
  JoinAll();
  EXPECT_EQ(At(2).generation().members.size(), 2u);
  EXPECT_EQ(At(2).generation().rank, 1);
  ExpectSum();
  ReplaceWorker0();
}

// The replacement does not share the folder of the others. They do not even notice it.
TEST_F(ShrinkingGroupTest, ATaskThatDoesNotFindTheClaimInterruptsNoOther) {
  for (const auto& task : running_) task->SetClaim(5);
  JoinAll();
  running_[1].reset();
  (void)All(Sum);
  JoinAll();
  const int64_t generation = At(0).generation().number;
  find_claim_ = [](int64_t claim) { return Unavailable("no claim ", claim); };
  Start(1);
  EXPECT_EQ(At(1).Join(-1), Unavailable("no claim 5"));
  EXPECT_FALSE(At(0).group().TaskWaits());
  running_[1].reset();
  EXPECT_TRUE(At(0).group().IsCurrent(generation));
  ExpectSum();
  std::atomic<int64_t> found = 0;
  find_claim_ = [&found](int64_t claim) {
    found = claim;
    return OkStatus();
  };
  ReplaceWorker0();
  EXPECT_EQ(found, 5);
}

// The other tasks continue without the chief, led by worker 0. When the chief returns, it leads
// again.
TEST_F(ShrinkingGroupTest, GoesOnWithoutTheLeaderUntilItReturns) {
  JoinAll();
  ExpectSum();
  EXPECT_TRUE(At(0).group().WriteGuard()());
  EXPECT_FALSE(At(1).group().WriteGuard()());
  const auto guard = At(0).group().WriteGuard();
  running_[0].reset();
  EXPECT_FALSE(guard()) << "the process has ended";
  (void)All(Sum);
  JoinAll();
  for (const size_t i : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(At(i).generation().rank, static_cast<int>(i) - 1);
    EXPECT_EQ(At(i).generation().members.size(), 2u);
    EXPECT_EQ(At(i).group().WriteGuard()(), i == 1) << i;
  }
  EXPECT_GT(At(1).generation().number, 1);
  ExpectSum();
  Start(0);
  std::thread chief([this] { EXPECT_EQ(At(0).Join(-1), OkStatus()); });
  const auto deadline = SteadyNow() + 20s;
  while (!At(1).group().TaskWaits() && SteadyNow() < deadline) {
    std::thread other([this] { EXPECT_EQ(Sum(At(2)), OkStatus()); });
    EXPECT_EQ(Sum(At(1)), OkStatus());
    other.join();
  }
  std::thread other([this] { EXPECT_EQ(At(2).Join(7), OkStatus()); });
  EXPECT_EQ(At(1).Join(7), OkStatus());
  other.join();
  chief.join();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(At(i).generation().rank, static_cast<int>(i));
    EXPECT_EQ(At(i).group().WriteGuard()(), i == 0) << i;
  }
  EXPECT_NE(At(0).generation().source, 0) << "the chief has no state";
  ExpectSum();
}

// Returns whether the condition becomes true within 20 s.
bool Becomes(const std::function<bool()>& condition) {
  const auto deadline = SteadyNow() + 20s;
  while (!condition()) {
    if (SteadyNow() >= deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;  // on a busy machine, this process may pause, and the condition might not last
}

// The leader is alive, but the other tasks may have continued without it, even if they have
// connected to it again.
TEST_F(ShrinkingGroupTest, ALeaderThatHasLostItsMajorityMayNotWrite) {
  JoinAll();
  ExpectSum();
  const auto guard = At(0).group().WriteGuard();
  const auto connected = [this] {
    return std::ranges::count(At(0).group().Peers(), state::PeerHealth::kConnected,
                              &state::PeerState::health);
  };
  EXPECT_TRUE(guard());
  EXPECT_GT(wire::BreakConnections(tasks_[0].address), 0);
  EXPECT_TRUE(Becomes([&] { return !guard(); }));
  EXPECT_TRUE(Becomes([&] { return connected() == 2; }));
  EXPECT_FALSE(guard());
  JoinAll();
  EXPECT_TRUE(guard());
  running_[2].reset();
  EXPECT_TRUE(Becomes([&] { return connected() == 1; }));
  EXPECT_TRUE(guard()) << "two of three";
}

// Stops this process, with all of its tasks, for some seconds.
void PauseProcess(int seconds) {
  std::string command = StrCat("sleep ", seconds, "; kill -CONT ", getpid());
  char shell[] = "sh", option[] = "-c";
  char* const arguments[] = {shell, option, command.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environ), 0);
  ASSERT_EQ(kill(getpid(), SIGSTOP), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

class PausedGroupTest : public ShrinkingGroupTest {
 protected:
  void SetUp() override {
    liveness_ = {.suspect_after = 2s, .lease = 6s};
    ShrinkingGroupTest::SetUp();
  }
};

// Messages that arrived before or during the pause do not prove that the other tasks still follow
// the leader.
TEST_F(PausedGroupTest, ALeaderThatWasPausedMayWriteOnlyOnceTheOthersAreHeardAgain) {
  JoinAll();
  ExpectSum();
  const auto guard = At(0).group().WriteGuard();
  EXPECT_TRUE(guard());
  PauseProcess(4);
  EXPECT_FALSE(guard());
  EXPECT_TRUE(Becomes([&] { return guard(); }));
}

// The whole job is asked to stop while the leader waits for the other tasks. The leader still saves
// its state.
TEST_F(ShrinkingGroupTest, ALeaderThatIsStoppedInAWaitMayWriteUntilItDeparts) {
  JoinAll();
  ExpectSum();
  const auto guard = At(0).group().WriteGuard();
  for (const size_t i : {size_t{0}, size_t{1}}) {
    At(i).Stop();
    EXPECT_EQ(At(i).Join(7).code(), StatusCode::kCancelled);
  }
  EXPECT_TRUE(guard());
  EXPECT_EQ(At(2).group().Depart(), OkStatus());
  running_[1].reset();
  running_[2].reset();
  EXPECT_TRUE(guard()) << "the others have resigned";
  EXPECT_EQ(At(0).group().Depart(), OkStatus());
  EXPECT_FALSE(guard());
}

// One task of three is not a majority, so it waits and never writes.
TEST_F(ShrinkingGroupTest, ATaskThatIsLeftAloneWaits) {
  JoinAll();
  running_[0].reset();
  running_[2].reset();
  (void)Sum(At(1));
  std::thread waits([this] { EXPECT_EQ(At(1).Join(7), OkStatus()); });
  EXPECT_NE(At(1).Await(Kind::kWaiting).find("chief 0"), std::string::npos);
  EXPECT_FALSE(At(1).group().WriteGuard()());
  Start(0);
  Start(2);
  std::thread chief([this] { EXPECT_EQ(At(0).Join(-1), OkStatus()); });
  EXPECT_EQ(At(2).Join(-1), OkStatus());
  chief.join();
  waits.join();
  EXPECT_EQ(At(0).generation().source, 1);
  ExpectSum();
}

}  // namespace
}  // namespace tfjob::collectives
