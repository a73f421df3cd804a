// Tests how a group waits for a task in an announced phase (Group::Announce). Time is simulated.
#include <gtest/gtest.h>

#include "runtime/collectives/membership/exchange_timer.h"
#include "runtime/collectives/membership/test_leader.h"

namespace tfjob::collectives {
namespace {

constexpr Duration kTick = 250ms;

// Worker 1 works on something other than a step, while workers 0 and 2 wait for it in an operation.
class PhaseTest : public ShrinkingTest {
 protected:
  // Sends the reports that the tasks send every 2 s during `length`, and calls `check` with the
  // time since the phase began at each tick. `phase` is kNone if worker 1 announces no phase.
  void Wait(Duration length, state::WorkPhase phase, Duration limit,
            const std::function<void(Duration)>& check) {
    const Duration began = now_;
    for (Duration lasted{0}; lasted < length; lasted += kTick, now_ += kTick) {
      if (lasted.count() % Duration(2s).count() == 0) {
        if (phase != state::WorkPhase::kNone && lasted > Duration(0)) Report(phase, lasted, limit);
        if (lasted > Duration(0)) ReportWaits(now_ - began);
      }
      leader_.Tick(now_);
      check(lasted);
    }
  }
  void Report(state::WorkPhase phase, Duration lasted, Duration limit) {
    leader_.OnMessage(now_, 2,
                      PhaseReport{.phase = phase,
                                  .microseconds = lasted.count(),
                                  .left = std::max(limit - lasted, Duration(0)).count()});
  }
  void ReportWaits(Duration waited) {
    for (const SessionId session : {SessionId{1}, SessionId{3}}) {
      leader_.OnMessage(now_, session,
                        WaitReport{.generation = generation_,
                                   .operation = 7,
                                   .name = "AllReduce",
                                   .on = 1,
                                   .microseconds = waited.count()});
    }
  }
  bool IsLate(Duration began) {
    return timer_.IsLate(now_, {.operation = 7, .name = "AllReduce", .on = 1, .since = began},
                         leader_.stuck().busy);
  }

  ExchangeTimer timer_{5s};  // strategy.timeout_seconds
};

TEST_F(PhaseTest, ASaveOf60sIsNamedAndTheTaskIsNotGivenUp) {
  const Duration began = now_;
  Wait(60s, state::WorkPhase::kSaving, 600s, [&](Duration lasted) {
    EXPECT_FALSE(IsLate(began)) << FormatDuration(lasted);
    EXPECT_TRUE(leader_.goes());
    if (lasted < Duration(2s)) return;
    EXPECT_EQ(leader_.stuck().peer, "worker 1");
    EXPECT_NE(leader_.stuck().text.find("worker 0 and worker 2 wait for worker 1, which has been "
                                        "saving a checkpoint for "),
              std::string::npos)
        << leader_.stuck().text;
  });
  EXPECT_NE(leader_.stuck().text.find("for 52s, in operation 7"), std::string::npos)
      << leader_.stuck().text;
}

// A step takes 0.3 s.
TEST_F(PhaseTest, AValidationAsLongAs100StepsIsNamedAndTheTaskIsNotGivenUp) {
  const Duration began = now_;
  Wait(100 * 300ms, state::WorkPhase::kValidating, 600s,
       [&](Duration) { EXPECT_FALSE(IsLate(began)); });
  EXPECT_TRUE(leader_.goes());
  EXPECT_NE(leader_.stuck().text.find("has been validating for "), std::string::npos)
      << leader_.stuck().text;
}

TEST_F(PhaseTest, WithoutAPhaseTheLimitApplies) {
  const Duration began = now_;
  Wait(10s, state::WorkPhase::kNone, 0s, [&](Duration lasted) {
    EXPECT_EQ(IsLate(began), lasted >= Duration(5s)) << FormatDuration(lasted);
  });
  EXPECT_EQ(leader_.stuck().text.find("which has been"), std::string::npos);
}

// The limit for operations counts from the deadline of the phase.
TEST_F(PhaseTest, APhaseBeyondItsDeadlineNoLongerCounts) {
  const Duration began = now_;
  Duration late{0};
  Wait(40s, state::WorkPhase::kCompiling, 20s, [&](Duration lasted) {
    if (IsLate(began) && late == Duration(0)) late = lasted;
  });
  EXPECT_GE(late, Duration(24s));
  EXPECT_LE(late, Duration(27s));
  EXPECT_NE(leader_.stuck().text.find("has been compiling a program for "), std::string::npos);
  EXPECT_NE(leader_.stuck().text.find(", longer than it announced, in operation"),
            std::string::npos)
      << leader_.stuck().text;
}

TEST_F(PhaseTest, TheLimitAppliesAgainAfterThePhase) {
  const Duration began = now_;
  Wait(12s, state::WorkPhase::kReadingData, 600s, [&](Duration) { EXPECT_FALSE(IsLate(began)); });
  const Duration ended = now_;
  leader_.OnMessage(now_, 2, PhaseReport{});
  Duration late{0};
  Wait(10s, state::WorkPhase::kNone, 0s, [&](Duration) {
    if (IsLate(began) && late == Duration(0)) late = now_ - ended;
  });
  EXPECT_GE(late, Duration(4500ms));
  EXPECT_LE(late, Duration(5s));
}

// A process that is stopped sends no reports, so what it has announced does not protect it.
TEST_F(PhaseTest, ASilentTaskIsNotExcusedForLong) {
  Report(state::WorkPhase::kSaving, 0s, 600s);
  bool busy = true;
  const Duration stopped = now_;
  Wait(8s, state::WorkPhase::kNone, 0s, [&](Duration lasted) {
    if (lasted >= Duration(2s)) busy = leader_.stuck().busy;
    if (lasted == Duration(4s)) {
      EXPECT_TRUE(busy);
    }
  });
  EXPECT_FALSE(busy);
  // Its lease expires, and the others continue without it.
  now_ = stopped + 10s;
  leader_.Disconnect(now_, 2, "silent for 10s");
  EXPECT_FALSE(leader_.goes());
  now_ += 2s;
  for (const SessionId session : {SessionId{1}, SessionId{3}}) Join(session);
  leader_.Tick(now_);
  EXPECT_EQ(Formed(), "02");
}

// Worker 0 has saved its last state, and waits for the others; worker 1 still validates.
TEST_F(PhaseTest, TasksThatJoinLearnForWhomTheyWait) {
  Join(3);
  EXPECT_EQ(leader_.awaited().text, "worker 0 and worker 1") << "the generation has ended";
  Join(1);
  Report(state::WorkPhase::kValidating, 12s, 600s);
  EXPECT_EQ(leader_.awaited().text, "worker 1, which has been validating for 12s,");
  EXPECT_EQ(leader_.awaited().peers, "worker 1");
  Join(2);
  EXPECT_EQ(Formed(), "012");
}

// Worker 2 was restarted, and joins after the step in which worker 1 saves.
TEST_F(PhaseTest, ATaskThatReturnsLearnsForWhomTheGroupWaits) {
  leader_.Disconnect(now_, 3, "its process has ended");
  now_ += 2s;
  EXPECT_EQ(Form({1, 2}), 2);
  ASSERT_EQ(leader_.Connect(now_, 2, 20, 4), OkStatus());
  Join(4);
  EXPECT_EQ(leader_.awaited().text, "");
  Report(state::WorkPhase::kSaving, 12s, 600s);
  EXPECT_EQ(leader_.awaited().text, "worker 1, which has been saving a checkpoint for 12s,");
  leader_.OnMessage(now_, 2, PhaseReport{});
  EXPECT_EQ(leader_.awaited().text, "");
}

// If each report renewed the notice, it would be sent to all members four times per second.
TEST_F(PhaseTest, NoticesAreRenewedEvery10s) {
  int notices = 0;
  Wait(35s, state::WorkPhase::kSaving, 600s, [&](Duration) {
    for (const auto& [session, message] : leader_.Take().messages) {
      notices += session == 3 && std::holds_alternative<StuckNotice>(message) ? 1 : 0;
    }
  });
  // The leader sends two at 2 s, when worker 0 and then worker 2 report that they wait, and one
  // each at 12 s, 22 s and 32 s.
  EXPECT_EQ(notices, 5);
}

}  // namespace
}  // namespace tfjob::collectives
