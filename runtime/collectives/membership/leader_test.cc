#include "runtime/collectives/membership/leader.h"

#include <gtest/gtest.h>

#include "runtime/collectives/membership/test_leader.h"
#include "runtime/state/run_failure.h"

namespace tfjob::collectives {
namespace {

TEST(Leader, ReplacesAProcessAtOnceAndRefusesItFromThenOn) {
  Leader leader({{.task = "worker 0"}, {.task = "worker 1"}});
  ASSERT_EQ(leader.Connect(0s, 0, 10, 1), OkStatus());
  ASSERT_EQ(leader.Connect(0s, 1, 11, 2), OkStatus());
  leader.OnMessage(0s, 1, JoinRequest());
  leader.OnMessage(0s, 2, JoinRequest{.last_generation = 41});
  EXPECT_EQ(leader.generation(), 42);
  leader.OnMessage(0s, 1, ReadyReport{42});
  leader.OnMessage(0s, 2, ReadyReport{42});
  ASSERT_EQ(leader.Connect(1s, 1, 12, 3), OkStatus());
  EXPECT_EQ(leader.Take().closed, std::vector<SessionId>{2});
  EXPECT_EQ(leader.awaited().peers, "worker 0, worker 1");
  leader.OnMessage(1s, 2, JoinRequest());  // from a closed session
  EXPECT_EQ(leader.awaited().peers, "worker 0, worker 1");
  EXPECT_EQ(leader.Connect(2s, 1, 11, 4).code(), StatusCode::kPermissionDenied);
}

TEST_F(LeaderTest, LearnsFromMembersWhichProcessesWereReplaced) {
  // A new leader does not know that process 11 of worker 1, which has been cut off, was replaced by
  // process 12.
  Connect(0, 10, 1);
  Connect(1, 11, 2);
  EXPECT_EQ(leader_.Admit(1, 12).code(), StatusCode::kAlreadyExists);
  Send(1, JoinRequest{.known = {{"worker 1", 11, true}, {"worker 7", 1, true}}});
  EXPECT_EQ(leader_.Take().closed, std::vector<SessionId>{2});
  EXPECT_EQ(leader_.Admit(1, 11).code(), StatusCode::kPermissionDenied);
  Connect(1, 12, 4);
  Send(4, JoinRequest());
  EXPECT_EQ(leader_.generation(), 1);
}

TEST_F(LeaderTest, RefusesEarlierProcessesOfWhichItHasHeardOnceAnotherOneHasTheirPlace) {
  Connect(0, 10, 1);
  Connect(1, 12, 2);
  Send(1, JoinRequest{.known = {{"worker 1", 11, false}, {"worker 1", 12, false}}});
  Send(2, JoinRequest());
  EXPECT_EQ(leader_.Admit(1, 11).code(), StatusCode::kAlreadyExists);
  Send(1, ReadyReport{1});
  Send(2, ReadyReport{1});
  EXPECT_EQ(leader_.Admit(1, 11).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(leader_.Admit(1, 12), OkStatus());
}

TEST_F(LeaderTest, KeepsItsOwnPlaceWhateverMembersSay) {
  Connect(0, 10, 1);
  Connect(1, 11, 2);
  Send(2, JoinRequest{.known = {{"worker 0", 10, true}}});
  Send(1, JoinRequest());
  EXPECT_EQ(leader_.generation(), 1);
}

TEST_F(LeaderTest, SendsOnlyMessagesThatMembersAccept) {
  Connect(0, 10, 1);
  Connect(1, 11, 2);
  const std::string longest(kMostAgreementBytes - 1, 'a');
  Send(1, JoinRequest{.agreement = longest + "b"});
  Send(2, JoinRequest{.agreement = longest + "c"});
  const auto refusal = Last<RefusalOrder>(2);
  ASSERT_TRUE(refusal);
  EXPECT_LT(refusal->why.size(), 1000u);
  EXPECT_EQ(
      DecodeToLeader(Encode(JoinRequest{.last_generation = int64_t{1} << 62})).status().code(),
      StatusCode::kDataLoss);
}

TEST_F(LeaderTest, NamesOnlySomeOfVeryManyMissingTasks) {
  std::vector<Member> tasks;
  for (int i = 0; i < 5000; ++i) {
    tasks.push_back({.task = StrCat("worker ", i), .address = std::string(200, 'h')});
  }
  const Leader leader(tasks);
  EXPECT_LT(leader.awaited().text.size(), 5000u);
  EXPECT_NE(leader.awaited().text.find("and 4"), std::string::npos) << leader.awaited().text;
  EXPECT_LT(leader.awaited().peers.size(), 1000u);
}

TEST_F(LeaderTest, KnowsThatTheEndIsKnownOnlyWhenAllMembersHaveHeardIt) {
  Connect(0, 10, 1);
  Connect(1, 11, 2);
  Send(1, JoinRequest{.request = 1});
  Send(2, JoinRequest{.request = 1});
  Send(1, ReadyReport{1});
  Send(2, ReadyReport{1});
  leader_.Disconnect(now_, 2, "the connection broke");
  leader_.Finish(OkStatus());
  EXPECT_FALSE(leader_.EndIsKnown()) << "the member will connect again";
  Connect(1, 11, 3);
  EXPECT_TRUE(Last<EndOrder>(3));
  EXPECT_FALSE(leader_.EndIsKnown());
  Send(3, LeaveNotice());
  EXPECT_TRUE(leader_.EndIsKnown());
}

TEST_F(LeaderTest, EndsTheJobForAllWhenATaskReportsThatTheRunHasFailed) {
  Connect(0, 10, 1);
  Connect(1, 11, 2);
  Send(2, RunFailureReport{"the loss is NaN"});
  EXPECT_EQ(Last<EndOrder>(1), (EndOrder{.failed = true, .words = "the loss is NaN"}));
}

TEST_F(LeaderTest, WaitsForTheReplacementOfATaskThatHasDeparted) {
  Connect(0, 10, 1);
  Connect(1, 11, 2);
  Send(1, JoinRequest{.request = 1});
  Send(2, JoinRequest{.request = 1});
  Send(2, DepartNotice());
  EXPECT_EQ(Last<FarewellReceipt>(2), FarewellReceipt{.departs = true});
  leader_.Disconnect(now_, 2, "the connection closed");
  Send(1, JoinRequest{.request = 2});
  EXPECT_EQ(leader_.generation(), 1);
  EXPECT_EQ(leader_.awaited().peers, "worker 1");
  Connect(1, 12, 3);
  Send(3, JoinRequest{.request = 1});
  EXPECT_EQ(leader_.generation(), 2);
}

TEST_F(ShrinkingTest, GoesOnWithoutALostMemberAfterAMoment) {
  leader_.Disconnect(now_, 3, "the connection broke");
  Join(1);
  Join(2);
  EXPECT_EQ(leader_.awaited().peers, "worker 2");
  now_ += 2s;
  leader_.Tick(now_);
  EXPECT_EQ(Formed(), "01");
}

TEST_F(ShrinkingTest, WaitsForMembersThatAreConnected) {
  leader_.Disconnect(now_, 3, "the connection broke");
  Join(1);
  now_ += 2s;
  leader_.Tick(now_);
  EXPECT_EQ(Formed(), "");
  EXPECT_EQ(leader_.awaited().peers, "worker 1, worker 2") << "no majority has joined yet";
  Join(2);
  EXPECT_EQ(Formed(), "01");
}

TEST_F(ShrinkingTest, GoesOnAtOnceWithoutAMemberThatDeparts) {
  leader_.OnMessage(now_, 3, DepartNotice());
  Join(1);
  Join(2);
  EXPECT_EQ(Formed(), "01");
}

TEST_F(ShrinkingTest, WaitsIfTooManyMembersAreLostAtOnce) {
  leader_.Disconnect(now_, 2, "the connection broke");
  leader_.Disconnect(now_, 3, "the connection broke");
  now_ += 2s;
  Join(1);
  EXPECT_EQ(Formed(), "");
  EXPECT_EQ(leader_.awaited().peers, "worker 1, worker 2");
  ASSERT_EQ(leader_.Connect(now_, 1, 99, 4), OkStatus());
  leader_.OnMessage(now_, 4, JoinRequest());
  EXPECT_EQ(Formed(), "") << "another process, which remembers nothing";
  ASSERT_EQ(leader_.Connect(now_, 2, 12, 5), OkStatus());
  Join(5);
  EXPECT_EQ(Formed(), "012");
}

TEST_F(ShrinkingTest, ExactlyHalfIsEnoughBecauseTheLeaderBelongsToIt) {
  leader_.OnMessage(now_, 3, DepartNotice());
  EXPECT_EQ(Form({1, 2}), 2);
  leader_.Disconnect(now_, 2, "the connection broke");
  now_ += 2s;
  Join(1);
  EXPECT_EQ(Formed(), "0");
}

TEST_F(ShrinkingTest, ATaskThatComesBackWaitsUntilTheOthersJoinAgain) {
  leader_.Disconnect(now_, 3, "the connection broke");
  now_ += 2s;
  EXPECT_EQ(Form({1, 2}), 2);
  ASSERT_EQ(leader_.Connect(now_, 2, 99, 4), OkStatus());
  EXPECT_FALSE(leader_.TaskWaits(now_));
  Join(4);
  EXPECT_TRUE(leader_.TaskWaits(now_));
  for (const auto& [session, message] : leader_.Take().messages) {
    EXPECT_FALSE(std::holds_alternative<WithdrawOrder>(message)) << "the generation goes on";
  }
  Join(1);
  EXPECT_EQ(Formed(), "");
  Join(2);
  EXPECT_EQ(Formed(), "012");
  EXPECT_FALSE(leader_.TaskWaits(now_));
}

TEST_F(ShrinkingTest, AGenerationUnderWayKeepsItsNumberWhateverOthersHaveSeen) {
  leader_.OnMessage(now_, 3, DepartNotice());
  for (const bool begun : {false, true}) {
    const int64_t number = leader_.generation() + 1;
    Join(1);
    Join(2);
    if (begun) {
      EXPECT_EQ(Begin({1, 2}), number);
    }
    ASSERT_EQ(leader_.Connect(now_, 2, 90 + number, 10 + static_cast<SessionId>(number)),
              OkStatus());
    leader_.OnMessage(now_, 10 + static_cast<SessionId>(number),
                      JoinRequest{.last_generation = 100 * number});
    EXPECT_EQ(leader_.generation(), number);
    if (!begun) {
      EXPECT_EQ(Begin({1, 2}), number);
    }
    EXPECT_TRUE(leader_.TaskWaits(now_)) << "the generation goes";
    leader_.OnMessage(now_, 10 + static_cast<SessionId>(number), DepartNotice());
    Join(1);
    Join(2);
    EXPECT_EQ(leader_.generation(), 100 * number + 1);
  }
}

// Worker 2 has returned in session 4, but worker 1 cannot connect to it.
TEST_F(ShrinkingTest, GoesOnWithoutATaskWithWhichTheOthersCannotConnect) {
  leader_.OnMessage(now_, 3, DepartNotice());
  ASSERT_EQ(leader_.Connect(now_, 2, 99, 4), OkStatus());
  Join(4);
  for (const Duration pause : {20s, 40s}) {
    Join(1);
    Join(2);
    EXPECT_EQ(Formed(), "012");
    leader_.OnMessage(now_, 1, ReadyReport{leader_.generation()});
    now_ += 20s;
    leader_.Tick(now_);
    Join(4);
    Join(1);
    Join(2);
    EXPECT_EQ(Formed(), "01");
    Begin({1, 2});
    EXPECT_FALSE(leader_.TaskWaits(now_));
    now_ += pause - 1ms;
    EXPECT_FALSE(leader_.TaskWaits(now_));
    now_ += 1ms;
    EXPECT_TRUE(leader_.TaskWaits(now_));
  }
  Join(1);
  Join(2);
  EXPECT_EQ(Formed(), "012");
  Begin({1, 2, 4});
  EXPECT_FALSE(leader_.TaskWaits(now_));
}

TEST_F(ShrinkingTest, WaitsForTheOnlyTaskThatMayHaveTheState) {
  // The second generation ends before worker 1 has sent its state to the other members.
  for (const SessionId session : {SessionId{1}, SessionId{3}}) Join(session, -1);
  Join(2);
  EXPECT_EQ(Begin({1, 2, 3}), 2);
  leader_.Disconnect(now_, 2, "the connection broke");
  now_ += 2s;
  for (const SessionId session : {SessionId{1}, SessionId{3}}) Join(session, -1);
  EXPECT_EQ(Formed(), "");
  EXPECT_EQ(leader_.awaited().peers, "worker 1");
}

TEST_F(ShrinkingTest, ANewLeaderThatIsToldOfNoGenerationBeginsWithAllTasks) {
  Leader next({{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}},
              {.shrinks = true});
  ASSERT_EQ(next.Connect(now_, 0, 20, 1), OkStatus());
  ASSERT_EQ(next.Connect(now_, 1, 11, 2), OkStatus());
  next.OnMessage(now_, 1, JoinRequest());
  next.OnMessage(now_, 2, JoinRequest{.step = 5, .state_generation = 1, .last_generation = 1});
  next.Tick(now_ + 60s);
  EXPECT_EQ(next.awaited().peers, "worker 2");
  EXPECT_EQ(next.generation(), 0);
}

}  // namespace
}  // namespace tfjob::collectives
