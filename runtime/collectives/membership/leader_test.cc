#include "runtime/collectives/membership/leader.h"

#include <gtest/gtest.h>

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

// The two members of a job: the leader, in session 1, and a task, in session 2.
class LeaderTest : public testing::Test {
 protected:
  void Connect(int task, int64_t incarnation, SessionId session) {
    ASSERT_EQ(leader_.Connect(now_, task, incarnation, session), OkStatus());
  }
  void Send(SessionId session, const ToLeader& message) {
    leader_.OnMessage(now_, session, message);
  }
  // Returns the last message of this kind that was sent to the session.
  template <typename Kind>
  std::optional<Kind> Last(SessionId session) {
    std::optional<Kind> last;
    for (const auto& [to, message] : leader_.Take().messages) {
      if (const auto* kind = std::get_if<Kind>(&message); kind != nullptr && to == session)
        last = *kind;
    }
    return last;
  }

  Duration now_{0};
  Leader leader_{{{.task = "worker 0", .address = "h:0"}, {.task = "worker 1", .address = "h:1"}}};
};

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

// A group of three that continues without lost members: the leader, in session 1, and two tasks.
class ShrinkingTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int task = 0; task < 3; ++task) {
      ASSERT_EQ(leader_.Connect(now_, task, 10 + task, static_cast<SessionId>(task + 1)),
                OkStatus());
    }
    EXPECT_EQ(Form({1, 2, 3}), 1);
  }
  void Join(SessionId session, int64_t step = 5) {
    leader_.OnMessage(now_, session,
                      JoinRequest{.step = step, .state_generation = generation_, .past = past_});
  }
  // Sends a request to join from every session, then reports from every session that the member is
  // connected. Returns the generation's number.
  int64_t Form(const std::vector<SessionId>& sessions) {
    for (const SessionId session : sessions) Join(session);
    return Begin(sessions);
  }
  int64_t Begin(const std::vector<SessionId>& sessions) {
    generation_ = leader_.generation();
    (void)Formed();
    past_ = {{.generation = generation_, .shared = true, .members = formed_}};
    for (const SessionId session : sessions) {
      leader_.OnMessage(now_, session, ReadyReport{generation_});
    }
    leader_.Take();
    return generation_;
  }
  // Returns the names of the members of the generation that forms.
  std::string Formed() {
    std::string tasks;
    for (const auto& [session, message] : leader_.Take().messages) {
      const auto* form = std::get_if<FormOrder>(&message);
      if (form == nullptr || session != 1) continue;
      formed_.clear();
      for (const Member& member : form->members) {
        tasks += member.task.substr(7);
        formed_.push_back({member.task, member.incarnation});
      }
    }
    return tasks;
  }

  Duration now_{100s};
  Leader leader_{{{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}},
                 {.shrinks = true}};
  int64_t generation_ = 0;
  std::vector<Participant> formed_;   // the members of the latest generation that has formed
  std::vector<PastGeneration> past_;  // what the members remember
};

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

// Worker 2 has come back in session 4, but worker 1 cannot connect to it.
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
  // The second generation ends before worker 1 has sent its state to the others.
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

// Worker 0, which led, is lost. Worker 1 leads, and worker 2 joins.
class TakeoverTest : public ShrinkingTest {
 protected:
  void Connect(int task, SessionId session) {
    ASSERT_EQ(next_.Connect(now_, task, 10 + task, session), OkStatus());
  }
  void Join(SessionId session, std::vector<PastGeneration> past) {
    next_.OnMessage(now_, session,
                    JoinRequest{.step = 5,
                                .state_generation = generation_,
                                .last_generation = past.empty() ? 0 : past.back().generation,
                                .past = std::move(past)});
  }
  // Returns the ranks of the generation that has formed since the last call, by task.
  std::string Formed() {
    std::string tasks;
    for (const auto& [session, message] : next_.Take().messages) {
      const auto* form = std::get_if<FormOrder>(&message);
      if (form == nullptr || session != 2) continue;
      for (const Member& member : form->members) tasks += member.task.substr(7);
    }
    return tasks;
  }

  Leader next_{{{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}},
               {.shrinks = true},
               /*self=*/1};
};

TEST_F(TakeoverTest, GoesOnWithAMajorityAfterAMomentAndCountsOn) {
  Connect(1, 2);
  Connect(2, 3);
  Join(2, past_);
  EXPECT_EQ(next_.awaited().peers, "worker 0, worker 2");
  Join(3, past_);
  EXPECT_EQ(next_.awaited().peers, "worker 0") << "it may still come";
  EXPECT_EQ(Formed(), "");
  now_ += 3s;
  next_.Tick(now_);
  EXPECT_EQ(Formed(), "12");
  EXPECT_EQ(next_.generation(), generation_ + 1);
}

TEST_F(TakeoverTest, WaitsWithoutAMajority) {
  Connect(1, 2);
  Join(2, past_);
  now_ += 60s;
  next_.Tick(now_);
  EXPECT_EQ(Formed(), "");
  ASSERT_EQ(next_.Connect(now_, 2, 99, 3), OkStatus());
  Join(3, {});
  EXPECT_EQ(Formed(), "") << "a process that was restarted does not count";
}

TEST_F(TakeoverTest, CountsNoProcessThatHasResigned) {
  std::vector<PastGeneration> resigned = past_;
  resigned[0].resigned = true;
  Connect(1, 2);
  Connect(2, 3);
  Join(2, past_);
  Join(3, resigned);
  now_ += 60s;
  next_.Tick(now_);
  EXPECT_EQ(Formed(), "");
}

// The members of a generation that has begun, but may not have been complete, could go on as well.
TEST_F(TakeoverTest, NeedsAMajorityOfEveryGenerationSinceTheLastSharedOne) {
  std::vector<PastGeneration> later = past_;
  later.push_back({.generation = generation_ + 1, .members = {{"worker 0", 10}, {"worker 2", 12}}});
  Connect(1, 2);
  Connect(2, 3);
  Join(2, past_);
  Join(3, later);
  now_ += 60s;
  next_.Tick(now_);
  EXPECT_EQ(Formed(), "") << "half of the later generation, without its leader";
  later[1].members = {{"worker 2", 12}, {"worker 0", 10}};
  Join(3, later);
  EXPECT_EQ(Formed(), "12") << "half of the later generation, with its leader";
}

TEST_F(TakeoverTest, LetsTheFirstTaskLeadAgainBetweenTwoGenerations) {
  Connect(1, 2);
  Connect(2, 3);
  Join(2, past_);
  Join(3, past_);
  now_ += 3s;
  next_.Tick(now_);
  for (const SessionId session : {SessionId{2}, SessionId{3}}) {
    next_.OnMessage(now_, session, ReadyReport{next_.generation()});
  }
  EXPECT_TRUE(next_.goes());
  ASSERT_EQ(next_.Connect(now_, 0, 99, 4), OkStatus());
  Join(4, {});
  EXPECT_TRUE(next_.TaskWaits(now_));
  EXPECT_FALSE(next_.ShouldHandBack());
  const std::vector<PastGeneration> past = {{.generation = next_.generation(),
                                             .shared = true,
                                             .members = {{"worker 1", 11}, {"worker 2", 12}}}};
  generation_ = next_.generation();
  Join(2, past);
  EXPECT_FALSE(next_.ShouldHandBack()) << "worker 2 is still in its step";
  EXPECT_TRUE(next_.HasMajority(past));
  Join(3, past);
  EXPECT_TRUE(next_.ShouldHandBack());
  EXPECT_EQ(next_.generation(), generation_) << "it forms no generation itself";
}

TEST_F(TakeoverTest, LosesTheMajorityWithItsSessions) {
  Connect(1, 2);
  Connect(2, 3);
  Join(2, past_);
  Join(3, past_);
  now_ += 3s;
  next_.Tick(now_);
  for (const SessionId session : {SessionId{2}, SessionId{3}}) {
    next_.OnMessage(now_, session, ReadyReport{next_.generation()});
  }
  const std::vector<PastGeneration> past = {{.generation = next_.generation(),
                                             .shared = true,
                                             .members = {{"worker 2", 12}, {"worker 1", 11}}}};
  EXPECT_TRUE(next_.HasMajority(past));
  next_.Disconnect(now_, 3, "the connection broke");
  EXPECT_FALSE(next_.HasMajority(past));
  Connect(2, 5);
  EXPECT_FALSE(next_.HasMajority(past)) << "it may have been in another generation meanwhile";
}

}  // namespace
}  // namespace tfjob::collectives
