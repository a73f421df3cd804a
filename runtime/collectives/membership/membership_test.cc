#include <gtest/gtest.h>

#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/member.h"
#include "runtime/collectives/membership/socket_intake.h"
#include "runtime/state/run_failure.h"

namespace tfjob::collectives {
namespace {

std::optional<RankWait> On(int rank, int64_t operation = 5) {
  return RankWait{.operation = operation, .name = "AllReduce", .on = rank, .waited = 3s};
}

TEST(Culprit, IsTheRankThatTheOthersWaitFor) {
  const struct {
    std::vector<std::optional<RankWait>> waits;
    int rank;  // -1: none
    size_t waiters;
  } cases[] = {
      {{}, -1, 0},
      {{std::nullopt, std::nullopt}, -1, 0},
      {{On(2), On(2), std::nullopt}, 2, 2},
      {{On(1), On(2), On(3), std::nullopt}, 3, 3},                // indirectly
      {{On(1), On(0, 4), On(0)}, 1, 2},                           // in a circle, the earliest
      {{On(3), std::nullopt, On(3), std::nullopt, On(1)}, 3, 2},  // most wait for it
      {{On(7), On(0)}, 0, 1},                                     // no such rank
      {{On(0), std::nullopt}, -1, 0},                             // for itself
  };
  for (const auto& c : cases) {
    const std::optional<Culprit> culprit = FindCulprit(c.waits);
    EXPECT_EQ(culprit ? culprit->rank : -1, c.rank);
    EXPECT_EQ(culprit ? culprit->waiters.size() : 0, c.waiters);
  }
}

TEST(Agreement, NamesTheFirstLineThatDiffers) {
  EXPECT_EQ(FirstDifference("a", "x: 1\ny: 2\n", "b", "x: 1\ny: 2\n"), "");
  EXPECT_EQ(FirstDifference("a", "x: 1\ny: 2\nz: 3\n", "b", "x: 1\ny: 4\nz: 5\n"),
            "a has 'y: 2', b has 'y: 4'");
  EXPECT_EQ(FirstDifference("a", "x: 1\n", "b", "x: 1\ny: 2\n"),
            "a has no such line, b has 'y: 2'");
}

TEST(Messages, SurviveTheWire) {
  const std::vector<ToLeader> to_leader = {
      JoinRequest{.request = 9,
                  .step = 3,
                  .state_generation = 1,
                  .agreement = "a\n\"b\"",
                  .last_generation = 2,
                  .known = {{"worker 1", 4, true}}},
      ReadyReport{4},
      FailureReport{.generation = 5, .why = "x"},
      WaitReport{.generation = 1, .operation = 2, .name = "Barrier", .on = 3, .microseconds = 4},
      LeaveNotice(),
      DepartNotice(),
      RunFailureReport{"NaN"}};
  for (const ToLeader& message : to_leader) EXPECT_EQ(*DecodeToLeader(Encode(message)), message);
  const std::vector<ToMember> to_member = {FormOrder{.request = 9,
                                                     .generation = 1,
                                                     .source = 0,
                                                     .members = {{"worker 0", "h:1", 7, 5, 1}},
                                                     .replaced = {{"worker 0", 6, true}}},
                                           GoOrder{2},
                                           WithdrawOrder{.generation = 3, .why = "y"},
                                           RefusalOrder{"z"},
                                           AwaitedNotice{.peers = "p", .address = "a", .text = "t"},
                                           StuckNotice{.peer = "p", .address = "a", .text = "t"},
                                           FarewellReceipt{.departs = true},
                                           EndOrder{.failed = true, .words = "NaN"}};
  for (const ToMember& message : to_member) EXPECT_EQ(*DecodeToMember(Encode(message)), message);
}

TEST(Messages, AreRefusedIfTheyAreNotMessages) {
  for (const char* text :
       {"", "[]", "7", R"({"kind":"jump"})", R"({"kind":"ready"})",
        R"({"kind":"ready","generation":0})",
        R"({"kind":"ready","generation":9223372036854775807})",
        R"({"kind":"join","step":-2,"agreement":"","lastGeneration":0})",
        R"({"kind":"wait","generation":1,"operation":0,"name":"","on":20000,"microseconds":0})"}) {
    EXPECT_EQ(DecodeToLeader(text).status().code(), StatusCode::kDataLoss) << text;
  }
  for (
      const char* text :
      {"{}", R"({"kind":"form","generation":1,"source":0,"members":[]})",
       R"({"kind":"form","generation":1,"source":1,"members":[{"task":"a","address":"b","incarnation":1,"step":0}]})",
       R"({"kind":"end","failed":1,"words":""})"}) {
    EXPECT_EQ(DecodeToMember(text).status().code(), StatusCode::kDataLoss) << text;
  }
  EXPECT_FALSE(DecodeToLeader(std::string(kMostMessageBytes + 1, ' ')).ok());
}

TEST(Messages, ShortenTextsForUsersAndKeepThemOnOneLine) {
  const auto why = std::get<FailureReport>(*DecodeToLeader(
      Encode(FailureReport{.generation = 1, .why = "a\nb" + std::string(5000, 'x')})));
  EXPECT_EQ(why.why.substr(0, 4), "a?bx");
  EXPECT_EQ(why.why.size(), state::kMaxFailureBytes);
}

TEST(Ranks, AreNamedWhereverTheyStandInAMessage) {
  std::vector<Member> members;
  for (int i = 0; i < 13; ++i) members.push_back({.task = StrCat("worker ", i), .address = "h:1"});
  EXPECT_EQ(NameRanks("rank 12 waits for rank 1, which is no crank 3", members),
            "rank 12 waits for rank 1, which is no crank 3 (rank 1 is worker 1 (h:1), rank 12 is "
            "worker 12 (h:1))");
  EXPECT_EQ(NameRanks("rank 13 waits", members), "rank 13 waits");
}

TEST(DataChannel, IsParsedOnlyAsItIsPrinted) {
  EXPECT_EQ(Print(DataChannel{12, 3}), "group-12-3");
  EXPECT_EQ(ParseDataChannel("group-12-3"), (DataChannel{12, 3}));
  for (const char* text : {"", "group", "group-", "group-1", "group-1-", "group--", "group-01-3",
                           "group-1-99999999999999999999", "other-1-2"}) {
    EXPECT_EQ(ParseDataChannel(text), std::nullopt) << text;
  }
}

TEST(SocketIntake, KeepsWhatComesEarlyAndRefusesWhatDoesNotFit) {
  const std::vector<Member> members = {{.task = "worker 0", .incarnation = 10},
                                       {.task = "worker 1", .incarnation = 11},
                                       {.task = "worker 2", .incarnation = 12}};
  SocketIntake intake({"worker 0", "worker 1", "worker 2"}, "worker 2");
  const DataChannel early{1, 1}, next{1, 2};
  const DataPeer first{"worker 0", 10}, second{"worker 1", 11};
  EXPECT_FALSE(intake.Admit({"worker 3", 1}, early).ok());
  EXPECT_FALSE(intake.Admit({"worker 2", 12}, early).ok());
  intake.Accept(first, early, wire::UniqueFd());
  EXPECT_FALSE(intake.Admit(first, early).ok()) << "a second socket";
  intake.Begin(early, members, 2);
  auto taken = intake.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].first, 0);
  EXPECT_FALSE(intake.Admit(first, early).ok()) << "a second socket";
  EXPECT_FALSE(intake.Admit({"worker 1", 99}, early).ok()) << "another process";
  intake.Accept(second, early, wire::UniqueFd());
  EXPECT_EQ(intake.Take().size(), 1u);
  intake.Accept(second, next, wire::UniqueFd());
  intake.End();
  EXPECT_FALSE(intake.Admit(first, early).ok()) << "a generation that has ended";
  intake.Begin(next, members, 2);
  taken = intake.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].first, 1);
  EXPECT_FALSE(intake.Admit(first, early).ok()) << "an earlier generation";
}

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
  leader.OnMessage(1s, 2, JoinRequest());  // of a closed session
  EXPECT_EQ(leader.awaited().peers, "worker 0, worker 1");
  EXPECT_EQ(leader.Connect(2s, 1, 11, 4).code(), StatusCode::kPermissionDenied);
}

// Two members of a job: the leader, in session 1, and a task in session 2.
class LeaderTest : public testing::Test {
 protected:
  void Connect(int task, int64_t incarnation, SessionId session) {
    ASSERT_EQ(leader_.Connect(now_, task, incarnation, session), OkStatus());
  }
  void Send(SessionId session, const ToLeader& message) {
    leader_.OnMessage(now_, session, message);
  }
  // Returns the last message of this kind to the session.
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
  EXPECT_EQ(leader_.Admit(1, 12).code(), StatusCode::kUnavailable);
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
  EXPECT_EQ(leader_.Admit(1, 11).code(), StatusCode::kUnavailable);
  Send(1, ReadyReport{1});
  Send(2, ReadyReport{1});
  EXPECT_EQ(leader_.Admit(1, 11).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(leader_.Admit(1, 12), OkStatus());
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
  void Join(SessionId session) {
    leader_.OnMessage(now_, session, JoinRequest{.step = 5, .state_generation = generation_});
  }
  // Joins from all sessions, and connects the members. Returns the number of the generation.
  int64_t Form(const std::vector<SessionId>& sessions) {
    for (const SessionId session : sessions) Join(session);
    return Begin(sessions);
  }
  int64_t Begin(const std::vector<SessionId>& sessions) {
    generation_ = leader_.generation();
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
      for (const Member& member : form->members) tasks += member.task.substr(7);
    }
    return tasks;
  }

  Duration now_{100s};
  Leader leader_{{{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}},
                 {.shrinks = true}};
  int64_t generation_ = 0;
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
  EXPECT_EQ(leader_.awaited().peers, "worker 1");
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
  EXPECT_EQ(Formed(), "") << "another process, which has not joined yet";
  Join(4);
  EXPECT_EQ(Formed(), "01");
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
  EXPECT_FALSE(leader_.TaskWaits());
  Join(4);
  EXPECT_TRUE(leader_.TaskWaits());
  for (const auto& [session, message] : leader_.Take().messages) {
    EXPECT_FALSE(std::holds_alternative<WithdrawOrder>(message)) << "the generation goes on";
  }
  Join(1);
  EXPECT_EQ(Formed(), "");
  Join(2);
  EXPECT_EQ(Formed(), "012");
  EXPECT_FALSE(leader_.TaskWaits());
}

TEST_F(ShrinkingTest, WaitsForTheOnlyTaskThatMayHaveTheState) {
  // The second generation ends before worker 1 has sent its state to the others.
  for (const SessionId session : {SessionId{1}, SessionId{3}}) {
    leader_.OnMessage(now_, session, JoinRequest{.step = -1});
  }
  Join(2);
  EXPECT_EQ(Begin({1, 2, 3}), 2);
  leader_.Disconnect(now_, 2, "the connection broke");
  now_ += 2s;
  for (const SessionId session : {SessionId{1}, SessionId{3}}) {
    leader_.OnMessage(now_, session, JoinRequest{.step = -1});
  }
  EXPECT_EQ(Formed(), "");
  EXPECT_EQ(leader_.awaited().peers, "worker 1");
}

TEST_F(ShrinkingTest, ANewLeaderBeginsWithAllTasks) {
  Leader next({{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}},
              {.shrinks = true});
  ASSERT_EQ(next.Connect(now_, 0, 20, 1), OkStatus());
  ASSERT_EQ(next.Connect(now_, 1, 11, 2), OkStatus());
  next.OnMessage(now_, 1, JoinRequest());
  next.OnMessage(now_, 2, JoinRequest{.step = 5, .state_generation = 1, .last_generation = 1});
  next.Tick(now_ + 60s);
  EXPECT_EQ(next.awaited().peers, "worker 2");
  EXPECT_EQ(next.generation(), 1);
}

TEST(GroupMember, TellsANewLeaderWhichProcessesWereReplaced) {
  GroupMember member({.task = "worker 1", .incarnation = 11}, {.task = "worker 0"});
  const auto form = [&](int64_t number, int64_t other) {
    member.Join({});
    const auto messages = member.TakeMessages();
    const auto& join = std::get<JoinRequest>(messages.back());
    member.OnMessage(FormOrder{.request = join.request,
                               .generation = number,
                               .members = {{.task = "worker 0", .incarnation = other},
                                           {.task = "worker 1", .incarnation = 11}}});
    member.SocketConnected(number, 0);
    member.OnMessage(GoOrder{number});
    member.TakeMessages();
    return std::get<JoinRequest>(messages.front()).known;
  };
  member.Connected();
  EXPECT_TRUE(form(1, 20).empty());
  EXPECT_TRUE(form(2, 21).empty());
  member.Disconnected(Unavailable("lost"));
  member.Connected();
  EXPECT_EQ(form(3, 21),
            (std::vector<KnownProcess>{
                {"worker 0", 20, true}, {"worker 0", 21, false}, {"worker 1", 11, false}}));
  EXPECT_TRUE(member.WasReplaced("worker 0", 20));
  EXPECT_FALSE(member.WasReplaced("worker 0", 21));
}

TEST(GroupMember, TakesNoGenerationThatItDidNotAskFor) {
  GroupMember member({.task = "worker 1", .incarnation = 11}, {.task = "worker 0"});
  const FormOrder order{
      .request = 1, .generation = 3, .members = {{.task = "worker 1", .incarnation = 11}}};
  member.Join({.step = 1, .agreement = ""});
  EXPECT_EQ(member.Awaited().peers, "worker 0");
  member.Connected();
  member.OnMessage(order);
  EXPECT_EQ(member.phase(), GroupMember::Phase::kReady);
  member.OnMessage(GoOrder{2});
  EXPECT_EQ(member.phase(), GroupMember::Phase::kReady);
  member.Disconnected(Unavailable("lost"));
  EXPECT_EQ(member.TakeLeft()->generation, 3);
  member.Connected();
  member.OnMessage(order);  // of the lost leader
  EXPECT_EQ(member.phase(), GroupMember::Phase::kJoining);
  member.OnMessage(GoOrder{3});
  EXPECT_EQ(member.phase(), GroupMember::Phase::kJoining);
}

TEST(GroupMember, DoesNotJoinAgainByItselfAfterItHasDeparted) {
  GroupMember member({.task = "worker 1", .incarnation = 11}, {.task = "worker 0"});
  member.Connected();
  member.Join({.step = 1, .agreement = ""});
  EXPECT_EQ(member.TakeMessages().size(), 1u);
  member.Depart();
  member.Disconnected(Cancelled("lost"));
  member.Connected();
  EXPECT_EQ(member.TakeMessages(), std::vector<ToLeader>{DepartNotice()});
  member.OnMessage(FormOrder{
      .request = 1, .generation = 3, .members = {{.task = "worker 1", .incarnation = 11}}});
  EXPECT_EQ(member.phase(), GroupMember::Phase::kIdle);
  member.OnMessage(FarewellReceipt{.departs = true});
  EXPECT_TRUE(member.farewell_heard());
  // The task has also taken its last step, and the leader must learn that, too.
  member.Leave();
  EXPECT_FALSE(member.farewell_heard());
  EXPECT_EQ(member.TakeMessages(), std::vector<ToLeader>{LeaveNotice()});
}

}  // namespace
}  // namespace tfjob::collectives
