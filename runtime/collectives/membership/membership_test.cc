#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/json.h"
#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/leader_search.h"
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
      {{On(1), On(0, 4), On(0)}, 1, 2},                           // a cycle: the earliest operation
      {{On(3), std::nullopt, On(3), std::nullopt, On(1)}, 3, 2},  // most ranks wait for rank 3
      {{On(7), On(0)}, 0, 1},                                     // no such rank
      {{On(0), std::nullopt}, -1, 0},                             // waits for itself
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
      JoinRequest{
          .request = 9,
          .step = 3,
          .state_generation = 1,
          .agreement = "a\n\"b\"",
          .address = "h:1",
          .begins_again = true,
          .claim = 11,
          .last_generation = 2,
          .known = {{"worker 1", 4, true}},
          .past =
              {{.generation = 2, .shared = true, .resigned = true, .members = {{"worker 1", 4}}}},
          .resigned = {{"worker 2", 6, 2}}},
      ReadyReport{4},
      FailureReport{.generation = 5, .why = "x", .departs = true},
      WaitReport{.generation = 1, .operation = 2, .name = "Barrier", .on = 3, .microseconds = 4},
      UnreachableReport{.generation = 3, .rank = 2},
      PhaseReport{.phase = state::WorkPhase::kSaving, .microseconds = 5, .left = 6},
      LeaveNotice{.last_generation = 4},
      DepartNotice{.last_generation = 5},
      RunFailureReport{"NaN"}};
  for (const ToLeader& message : to_leader) EXPECT_EQ(*DecodeToLeader(Encode(message)), message);
  const std::vector<ToMember> to_member = {
      FormOrder{.request = 9,
                .generation = 1,
                .source = 0,
                .members = {{"worker 0", "h:1", 7, 5, 1}},
                .replaced = {{"worker 0", 6, true}}},
      GoOrder{2},
      WithdrawOrder{.generation = 3, .why = "y", .departs = true},
      RefusalOrder{"z"},
      ClaimOrder{12},
      AwaitedNotice{.peers = "p", .address = "a", .text = "t"},
      StuckNotice{.peer = "p", .address = "a", .text = "t", .busy = true},
      FarewellReceipt{.departs = true},
      EndOrder{.failed = true, .words = "NaN"}};
  for (const ToMember& message : to_member) EXPECT_EQ(*DecodeToMember(Encode(message)), message);
}

TEST(Messages, AreRefusedIfTheyAreNotMessages) {
  for (const char* text : {"", "[]", "7", "{}", R"({"kind":"jump"})", R"({"kind":"ready"})"}) {
    EXPECT_EQ(DecodeToLeader(text).status().code(), StatusCode::kDataLoss) << text;
    EXPECT_EQ(DecodeToMember(text).status().code(), StatusCode::kDataLoss) << text;
  }
  EXPECT_FALSE(DecodeToLeader(std::string(kMostMessageBytes + 1, ' ')).ok());
}

// Returns the message with one field changed.
std::string Changed(const std::string& message, const std::string& path, const Json& value) {
  Json json = *ParseJson(message, "a message");
  json.at(Json::json_pointer(path)) = value;
  return PrintJson(json);
}

TEST(Messages, AreRefusedIfAFieldOfAFarewellOrAReportIsOutOfRange) {
  const std::string unreachable = Encode(ToLeader(UnreachableReport{.generation = 1})),
                    leave = Encode(ToLeader(LeaveNotice())),
                    depart = Encode(ToLeader(DepartNotice())),
                    phase = Encode(ToLeader(PhaseReport()));
  const std::tuple<std::string, const char*, Json> cases[] = {
      {leave, "/lastGeneration", int64_t{1} << 62},
      {leave, "/lastGeneration", -1},
      {depart, "/lastGeneration", int64_t{1} << 62},
      {unreachable, "/generation", 0},
      {unreachable, "/rank", -1},
      {unreachable, "/rank", kMostMembers},
      {phase, "/phase", "sleeping"},
      {phase, "/left", -1},
      {phase, "/microseconds", "1"}};
  for (const auto& [message, path, value] : cases) {
    ASSERT_TRUE(DecodeToLeader(message).ok()) << message;
    EXPECT_EQ(DecodeToLeader(Changed(message, path, value)).status().code(), StatusCode::kDataLoss)
        << path;
  }
}

TEST(Messages, AreRefusedIfAFieldIsOutOfRange) {
  const std::string join = Encode(ToLeader(
                        JoinRequest{.known = {{"worker 1", 4, true}},
                                    .past = {{.generation = 1, .members = {{"worker 1", 4}}}},
                                    .resigned = {{"worker 1", 4, 1}}})),
                    ready = Encode(ToLeader(ReadyReport{4})),
                    wait = Encode(ToLeader(WaitReport{.generation = 1}));
  const std::string long_name(257, 'w');
  const Json known = ParseJson(join, "a message")->at("known").at(0),
             past = ParseJson(join, "a message")->at("past").at(0),
             resigned = ParseJson(join, "a message")->at("resigned").at(0);
  const std::tuple<std::string, const char*, Json> to_leader[] = {
      {join, "/step", -2},
      {join, "/request", -1},
      {join, "/lastGeneration", int64_t{1} << 62},
      {join, "/agreement", std::string(kMostAgreementBytes + 1, 'a')},
      {join, "/known", Json(std::vector<Json>(kMostKnown + 1, known))},
      {join, "/known/0", nullptr},
      {join, "/known/0/task", long_name},
      {join, "/known/0/replaced", 1},
      {join, "/past/0/generation", 0},
      {join, "/past/0/shared", 1},
      {join, "/past/0/members", Json::array()},
      {join, "/past", Json(std::vector<Json>(kMostKnown + 1, past))},
      {join, "/resigned", Json(std::vector<Json>(kMostMembers + 1, resigned))},
      {join, "/resigned/0/task", long_name},
      {join, "/resigned/0/incarnation", -1},
      {join, "/resigned/0/generation", int64_t{1} << 62},
      {ready, "/generation", 0},
      {ready, "/generation", INT64_MAX},
      {wait, "/on", -2},
      {wait, "/on", kMostMembers},
      {wait, "/microseconds", -1}};
  for (const auto& [message, path, value] : to_leader) {
    ASSERT_TRUE(DecodeToLeader(message).ok()) << message;
    EXPECT_EQ(DecodeToLeader(Changed(message, path, value)).status().code(), StatusCode::kDataLoss)
        << path;
  }
  const std::string form =
      Encode(ToMember(FormOrder{.generation = 1,
                                .members = {{.task = "worker 0", .incarnation = 7}},
                                .replaced = {{"worker 1", 4, true}}}));
  const Json member = ParseJson(form, "a message")->at("members").at(0);
  const std::tuple<std::string, const char*, Json> to_member[] = {
      {form, "/source", 1},
      {form, "/source", -1},
      {form, "/members", Json::array()},
      {form, "/members", Json(std::vector<Json>(kMostMembers + 1, member))},
      {form, "/members/0", nullptr},
      {form, "/members/0/task", long_name},
      {form, "/members/0/step", -2},
      {form, "/replaced/0", nullptr},
      {Encode(ToMember(EndOrder())), "/failed", 1}};
  for (const auto& [message, path, value] : to_member) {
    ASSERT_TRUE(DecodeToMember(message).ok()) << message;
    EXPECT_EQ(DecodeToMember(Changed(message, path, value)).status().code(), StatusCode::kDataLoss)
        << path;
  }
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
  member.OnMessage(order);  // from the lost leader
  EXPECT_EQ(member.phase(), GroupMember::Phase::kJoining);
  member.OnMessage(GoOrder{3});
  EXPECT_EQ(member.phase(), GroupMember::Phase::kJoining);
}

TEST(GenerationHistory, RemembersWhatMayStillGoOn) {
  const auto order = [](int64_t number, const char* other) {
    return FormOrder{
        .generation = number,
        .members = {{.task = "worker 0", .incarnation = 1}, {.task = other, .incarnation = 2}}};
  };
  const auto numbers = [](const GenerationHistory& history) {
    std::vector<int64_t> all;
    for (const PastGeneration& past : history.past()) all.push_back(past.generation);
    return all;
  };
  GenerationHistory history;
  history.Begin(order(1, "worker 1"));
  history.Share(1);
  history.Begin(order(2, "worker 1"));
  history.Begin(order(4, "worker 1"));
  EXPECT_EQ(numbers(history), (std::vector<int64_t>{1, 4})) << "the same members as in 2";
  history.Begin(order(5, "worker 2"));
  EXPECT_EQ(numbers(history), (std::vector<int64_t>{1, 4, 5}));
  history.Resign();
  EXPECT_TRUE(history.past()[0].resigned && history.past()[2].resigned);
  history.Begin(order(6, "worker 2"));
  EXPECT_EQ(numbers(history), (std::vector<int64_t>{1, 4, 5, 6}));
  history.Share(6);
  EXPECT_EQ(numbers(history), (std::vector<int64_t>{6}));
  EXPECT_TRUE(history.past()[0].shared);
}

// Tests, for several states of a task (TaskView), which tasks it asks to lead it, and which tasks
// may follow it.
TEST(LeaderSearch, BringsTasksToTheFirstOneThatLeads) {
  GroupMember joins({.task = "worker 1", .incarnation = 11}, {.task = "worker 0"}, true);
  EXPECT_EQ(TasksToAsk({.task = 1, .member = &joins}, 40), std::vector<int>{0});
  EXPECT_EQ(TasksToAsk({.task = 1, .shrinks = true, .member = &joins}, 3),
            (std::vector<int>{0, 2}));
  EXPECT_EQ(TasksToAsk({.task = 20, .shrinks = true, .member = &joins}, 40).size(),
            static_cast<size_t>(kMostLeaders));
  const TaskView leads{.task = 1, .shrinks = true, .leads = true, .member = &joins};
  EXPECT_EQ(MayFollow(leads, "worker 1", 2).code(), StatusCode::kUnavailable) << "not joined yet";
  joins.Join({});
  EXPECT_TRUE(Searches(leads));
  EXPECT_EQ(MayFollow(leads, "worker 1", 2), OkStatus());
  EXPECT_EQ(MayFollow(leads, "worker 1", 0).code(), StatusCode::kUnavailable);
  TaskView refused = leads;
  refused.occupied = 0;
  EXPECT_EQ(MayFollow(refused, "worker 1", 0), OkStatus());
  TaskView followed = leads;
  followed.first_follows = true;
  EXPECT_EQ(MayFollow(followed, "worker 1", 0), OkStatus());
  const TaskView follows{.task = 1, .shrinks = true, .member = &joins};
  EXPECT_EQ(MayFollow(follows, "worker 1", 2).code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(MayLead(follows)) << "it remembers no generation";
  joins.Connected();
  joins.OnMessage(FormOrder{
      .request = 1, .generation = 3, .members = {{.task = "worker 1", .incarnation = 11}}});
  joins.OnMessage(GoOrder{3});
  EXPECT_FALSE(Searches(leads)) << "its generation goes";
  EXPECT_EQ(MayFollow(leads, "worker 1", 0), OkStatus());
  joins.Join({});
  EXPECT_TRUE(MayLead(follows));
  EXPECT_FALSE(MayLead({.task = 1, .shrinks = true, .rests = true, .member = &joins}));
  EXPECT_FALSE(Searches({.task = 0, .shrinks = true, .rests = true, .member = &joins}));
}

TEST(GroupMember, SaysThatItWaitsForAGroupThatTrainsWithoutIt) {
  GroupMember member({.task = "worker 1", .incarnation = 11},
                     {.task = "worker 0", .address = "h:0"});
  member.Connected();
  member.Join({});
  member.OnMessage(AwaitedNotice{.text = "worker 2 (h:2)"});
  EXPECT_EQ(member.Awaited().text, "waits for worker 2 (h:2) to join the group");
  member.OnMessage(AwaitedNotice());
  EXPECT_EQ(member.Awaited().text,
            "waits for the group, which trains without this task: worker 0 (h:0) forms its next "
            "generation");
}

// Worker 1 is a member of generation 3 with worker 0, which leads, and worker 2.
class MemberOfThreeTest : public testing::Test {
 protected:
  void SetUp() override {
    member_.Connected();
    member_.Join({.step = 1});
    Form(1, 3);
  }
  void Form(int64_t request, int64_t generation) {
    member_.OnMessage(FormOrder{.request = request,
                                .generation = generation,
                                .members = {{.task = "worker 0", .incarnation = 10},
                                            {.task = "worker 1", .incarnation = 11},
                                            {.task = "worker 2", .incarnation = 12}}});
  }
  void Train(int64_t generation) {
    for (const int rank : {0, 2}) member_.SocketConnected(generation, rank);
    member_.OnMessage(GoOrder{generation});
    member_.Shared(generation);
  }
  // Returns the resigned processes in the last request to join.
  std::vector<ResignedProcess> Resigned() {
    std::vector<ResignedProcess> resigned;
    for (const ToLeader& message : member_.TakeMessages()) {
      if (const auto* join = std::get_if<JoinRequest>(&message)) resigned = join->resigned;
    }
    return resigned;
  }

  GroupMember member_{{.task = "worker 1", .incarnation = 11}, {.task = "worker 0"}, true};
};

TEST_F(MemberOfThreeTest, TellsTheNextLeaderWhichOthersDepart) {
  Train(3);
  member_.NoteResigned({{"worker 0", 10, 3}, {"worker 2", 12, 3}});
  member_.Disconnected(Unavailable("it has exited"));
  member_.Join({.step = 1});
  member_.Connected(Member{.task = "worker 3"});
  EXPECT_EQ(Resigned(), (std::vector<ResignedProcess>{{"worker 0", 10, 3}, {"worker 2", 12, 3}}));
  Form(2, 4);
  Train(4);
  member_.Join({.step = 2});
  EXPECT_EQ(Resigned(), std::vector<ResignedProcess>()) << "generation 3 no longer matters";
}

TEST_F(MemberOfThreeTest, ReportsARankThatItCannotReachOnce) {
  member_.TakeMessages();
  member_.SocketFailed(3, 2, Unavailable("connection refused"));
  member_.SocketFailed(3, 2, Unavailable("connection refused"));
  EXPECT_EQ(member_.TakeMessages(),
            (std::vector<ToLeader>{UnreachableReport{.generation = 3, .rank = 2}}));
}

// Returns the claim in the last request to join, or -1 if there is none.
int64_t ClaimOf(const std::vector<ToLeader>& messages) {
  int64_t claim = -1;
  for (const ToLeader& message : messages) {
    if (const auto* join = std::get_if<JoinRequest>(&message)) claim = join->claim;
  }
  return claim;
}

TEST(GroupMember, FindsTheClaimOfItsGroupBeforeItTakesPart) {
  GroupMember member({.task = "worker 1", .incarnation = 11}, {.task = "worker 0"});
  member.Connected();
  member.Join({});
  EXPECT_EQ(ClaimOf(member.TakeMessages()), 0);
  EXPECT_EQ(member.ClaimToFind(), 0);
  member.OnMessage(ClaimOrder{7});
  EXPECT_EQ(member.ClaimToFind(), 7);
  member.FoundClaim(6);
  EXPECT_EQ(ClaimOf(member.TakeMessages()), -1) << "it has found a claim of another leader";
  member.FoundClaim(7);
  EXPECT_EQ(member.ClaimToFind(), 0);
  EXPECT_EQ(ClaimOf(member.TakeMessages()), 7);
  member.OnMessage(ClaimOrder{8});
  member.Disconnected(Unavailable("the leader was lost"));
  EXPECT_EQ(member.ClaimToFind(), 0) << "the next leader asks again";
  member.Connected();
  EXPECT_EQ(ClaimOf(member.TakeMessages()), 7);
  member.Join({.step = 3, .claim = 9});
  EXPECT_EQ(ClaimOf(member.TakeMessages()), 9) << "that of the group that has given it its state";
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
  // The task has now taken its last step, and must announce this as well.
  member.Leave();
  EXPECT_FALSE(member.farewell_heard());
  EXPECT_EQ(member.TakeMessages(), std::vector<ToLeader>{LeaveNotice()});
}

}  // namespace
}  // namespace tfjob::collectives
