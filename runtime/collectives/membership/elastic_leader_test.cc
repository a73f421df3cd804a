// Tests the leader of a group whose number of tasks may change.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/leader_search.h"
#include "runtime/collectives/membership/member.h"
#include "runtime/collectives/membership/test_leader.h"

namespace tfjob::collectives {
namespace {

std::vector<Member> Workers() {
  std::vector<Member> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back({.task = StrCat("worker ", i)});
  for (int i = 0; i < 3; ++i) tasks[static_cast<size_t>(i)].address = StrCat("w", i, ":1");
  return tasks;
}

constexpr LeaderRules kRules{.shrinks = true,
                             .least_tasks = 2,
                             .listed_tasks = 3,
                             .start_patience = 30s,
                             .first_generation = 1000};

// Two more tasks may join the group of three.
class ElasticLeaderTest : public ShrinkingTest {
 protected:
  ElasticLeaderTest() : ShrinkingTest(Workers(), kRules) {}
  void SetUp() override {
    for (int task = 0; task < 3; ++task) {
      ASSERT_EQ(leader_.Connect(now_, task, 10 + task, static_cast<SessionId>(task + 1)),
                OkStatus());
    }
    EXPECT_EQ(Form({1, 2, 3}), 1000);
  }
  void Arrive(int task, SessionId session) {
    ASSERT_EQ(leader_.Connect(now_, task, 90 + task, session), OkStatus());
    leader_.OnMessage(now_, session, JoinRequest{.address = StrCat("new", task, ":1")});
  }
  // Returns the claims that the leader has made the task find since the last call.
  std::vector<int64_t> Claims(SessionId session) {
    std::vector<int64_t> claims;
    for (const auto& [to, message] : leader_.Take().messages) {
      const auto* claim = std::get_if<ClaimOrder>(&message);
      if (claim != nullptr && to == session) claims.push_back(claim->claim);
    }
    return claims;
  }
};

TEST_F(ElasticLeaderTest, ANewcomerJoinsWhenTheMembersJoinAgainAndIsKnownByItsAddress) {
  Arrive(4, 9);
  EXPECT_TRUE(leader_.TaskWaits(now_));
  Join(1);
  Join(2);
  Join(3);
  std::vector<std::string> addresses;
  for (const auto& [session, message] : leader_.Take().messages) {
    const auto* form = std::get_if<FormOrder>(&message);
    if (form == nullptr || session != 9) continue;
    for (const Member& member : form->members) addresses.push_back(member.address);
  }
  EXPECT_EQ(addresses, (std::vector<std::string>{"w0:1", "w1:1", "w2:1", "new4:1"}));
}

TEST_F(ElasticLeaderTest, ATaskThatDepartsIsNotAwaited) {
  leader_.OnMessage(now_, 2, DepartNotice());
  Join(1);
  Join(3);
  EXPECT_EQ(Formed(), "02");
}

TEST_F(ElasticLeaderTest, ATaskThatDepartsAfterTheOthersHaveJoinedIsNotAwaited) {
  Join(1);
  Join(3);
  EXPECT_EQ(Formed(), "");
  leader_.OnMessage(now_, 2, DepartNotice());
  EXPECT_EQ(Formed(), "02");
}

TEST_F(ElasticLeaderTest, ATaskThatLeavesAfterTheOthersHaveJoinedIsNotAwaited) {
  Join(1);
  Join(3);
  leader_.OnMessage(now_, 2, LeaveNotice());
  EXPECT_EQ(Formed(), "02");
}

TEST_F(ElasticLeaderTest, ANewcomerThatDoesNotFitIsRefusedWithoutStoppingTheGroup) {
  ASSERT_EQ(leader_.Connect(now_, 4, 94, 9), OkStatus());
  leader_.OnMessage(now_, 9, JoinRequest{.agreement = "model: b\n"});
  EXPECT_FALSE(leader_.TaskWaits(now_));
  const LeaderOutput output = leader_.Take();
  EXPECT_TRUE(std::ranges::any_of(output.messages, [](const auto& message) {
    return message.first == 9 && std::holds_alternative<RefusalOrder>(message.second);
  }));
}

TEST_F(ElasticLeaderTest, ANewcomerMustFindTheClaimBeforeTheMembersStop) {
  leader_.NoteClaim(7);
  Arrive(4, 9);
  EXPECT_FALSE(leader_.TaskWaits(now_));
  EXPECT_EQ(Claims(9), std::vector<int64_t>{7});
  leader_.OnMessage(now_, 9, JoinRequest{.claim = 6});
  EXPECT_EQ(Claims(9), std::vector<int64_t>{7}) << "it has found that of an earlier run";
  EXPECT_FALSE(leader_.TaskWaits(now_));
  leader_.OnMessage(now_, 9, JoinRequest{.claim = 7});
  EXPECT_EQ(Claims(9), std::vector<int64_t>());
  EXPECT_TRUE(leader_.TaskWaits(now_));
}

TEST_F(ElasticLeaderTest, ATaskThatDoesNotFindTheClaimIsNotAwaited) {
  leader_.NoteClaim(7);
  Arrive(4, 9);
  Join(1);
  Join(2);
  Join(3);
  EXPECT_EQ(Formed(), "012") << "it still looks for the claim";
  leader_.OnMessage(now_, 9, DepartNotice());
  EXPECT_FALSE(leader_.TaskWaits(now_));
}

// A leader that has no state does not know the claim. Neither does a task without a state.
TEST_F(ElasticLeaderTest, TheLeaderLearnsTheClaimFromTasksWithAState) {
  Arrive(4, 9);
  leader_.OnMessage(now_, 9, JoinRequest{.claim = 99});
  EXPECT_TRUE(leader_.TaskWaits(now_));
  leader_.OnMessage(
      now_, 2, JoinRequest{.step = 5, .state_generation = generation_, .claim = 7, .past = past_});
  EXPECT_EQ(Claims(9), std::vector<int64_t>{7});
  Join(1);
  Join(3);
  EXPECT_EQ(Formed(), "012");
}

TEST_F(ElasticLeaderTest, ATaskIsReachedAtTheAddressThatItHasSent) {
  for (const SessionId session : {1, 2, 3}) {
    leader_.OnMessage(now_, session,
                      JoinRequest{.step = 5,
                                  .state_generation = generation_,
                                  .address = session == 2 ? "moved:1" : "",
                                  .past = past_});
  }
  std::vector<std::string> addresses;
  for (const auto& [session, message] : leader_.Take().messages) {
    const auto* form = std::get_if<FormOrder>(&message);
    if (form == nullptr || session != 1) continue;
    for (const Member& member : form->members) addresses.push_back(member.address);
  }
  EXPECT_EQ(addresses, (std::vector<std::string>{"w0:1", "moved:1", "w2:1"}));
}

TEST_F(ElasticLeaderTest, BelowTheMinimumTheGroupWaits) {
  leader_.OnMessage(now_, 2, DepartNotice());
  leader_.OnMessage(now_, 3, DepartNotice());
  now_ += 60s;
  Join(1);
  EXPECT_EQ(Formed(), "");
  EXPECT_EQ(leader_.awaited().text, "1 more task (strategy.min_replicas is 2)");
  Arrive(3, 9);
  EXPECT_EQ(Formed(), "03");
}

TEST_F(ElasticLeaderTest, WithoutAMajorityTheMembersAreAwaited) {
  leader_.Disconnect(now_, 2, "the connection broke");
  leader_.Disconnect(now_, 3, "the connection broke");
  Arrive(4, 9);
  now_ += 60s;
  Join(1);
  leader_.Tick(now_);
  EXPECT_EQ(Formed(), "") << "the two others may continue elsewhere";
  EXPECT_EQ(leader_.awaited().peers, "worker 1, worker 2");
}

// Leads a group whose leader was worker 0, and which has trained in this generation.
class ElasticTakeoverTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int task = 0; task < 4; ++task) {
      past_[0].members.push_back({.task = StrCat("worker ", task), .incarnation = 10 + task});
    }
    for (const int task : {1, 2}) {
      ASSERT_EQ(leader_.Connect(now_, task, 10 + task, Session(task)), OkStatus());
    }
  }
  static SessionId Session(int task) { return static_cast<SessionId>(task + 1); }
  void Join(int task, const std::vector<ResignedProcess>& resigned = {}) {
    leader_.OnMessage(now_, Session(task),
                      JoinRequest{.step = 5,
                                  .state_generation = 500,
                                  .last_generation = 500,
                                  .past = past_,
                                  .resigned = resigned});
  }

  Duration now_{100s};
  Leader leader_{Workers(), kRules, /*self=*/1};
  std::vector<PastGeneration> past_ = {{.generation = 500, .shared = true}};
};

// The leader and worker 3 were asked to exit in the same step. The two others have heard this from
// them, and are all that is left of the group.
TEST_F(ElasticTakeoverTest, TheMembersReportWhichOthersHaveAnnouncedThatTheyExit) {
  const std::vector<ResignedProcess> resigned = {{"worker 0", 10, 500}, {"worker 3", 13, 500}};
  Join(1, resigned);
  Join(2, resigned);
  EXPECT_EQ(leader_.generation(), 501) << "it continues the numbers of its group";
}

TEST_F(ElasticTakeoverTest, WithoutTheReportsTheMembersAreNoMajority) {
  Join(1);
  Join(2, {{"worker 0", 99, 500}, {"worker 3", 13, 499}});
  now_ += 60s;
  leader_.Tick(now_);
  EXPECT_EQ(leader_.generation(), 0) << "another process, and an earlier generation";
}

// The new leader has not heard which generations the departing task remembers.
TEST_F(ElasticTakeoverTest, ATaskMayDepartBeforeItHasJoinedTheNewLeader) {
  for (const int task : {0, 3}) {
    ASSERT_EQ(leader_.Connect(now_, task, 10 + task, Session(task)), OkStatus());
    leader_.OnMessage(now_, Session(task), DepartNotice{.last_generation = 500});
    leader_.Disconnect(now_, Session(task), "it has exited");
  }
  Join(1);
  Join(2);
  EXPECT_EQ(leader_.generation(), 501);
}

class ElasticStartTest : public testing::Test {
 protected:
  void Arrive(int task) {
    const auto session = static_cast<SessionId>(task + 1);
    ASSERT_EQ(leader_.Connect(now_, task, 10, session), OkStatus());
    leader_.OnMessage(now_, session, JoinRequest());
  }
  void Wait(Duration time) {
    now_ += time;
    leader_.Tick(now_);
  }

  Duration now_{100s};
  Leader leader_{Workers(), kRules};
};

TEST_F(ElasticStartTest, WaitsForTheListedTasksOnlyForSomeTime) {
  Arrive(0);
  Arrive(1);
  EXPECT_EQ(leader_.awaited().peers, "worker 2");
  Wait(30s - 1ms);
  EXPECT_EQ(leader_.generation(), 0);
  Wait(1ms);
  EXPECT_EQ(leader_.generation(), 1000);
}

TEST_F(ElasticStartTest, DoesNotBeginBelowTheMinimum) {
  Arrive(0);
  Wait(60s);
  EXPECT_EQ(leader_.generation(), 0);
  EXPECT_EQ(leader_.awaited().text, "1 more task (strategy.min_replicas is 2)");
  Arrive(4);
  EXPECT_EQ(leader_.generation(), 1000) << "any task is good enough";
}

// The group of the first task's predecessor may train elsewhere, led by a task that is not listed.
TEST_F(ElasticStartTest, AfterARestartWaitsForACallOfAnotherLeader) {
  for (int task = 0; task < 3; ++task) {
    const auto session = static_cast<SessionId>(task + 1);
    ASSERT_EQ(leader_.Connect(now_, task, 10, session), OkStatus());
    leader_.OnMessage(now_, session, JoinRequest{.begins_again = true});
  }
  EXPECT_EQ(leader_.generation(), 0);
  EXPECT_EQ(leader_.awaited().text, "tasks that may have continued without this one");
  Wait(kRules.call_patience - 1ms);
  EXPECT_EQ(leader_.generation(), 0);
  Wait(1ms);
  EXPECT_EQ(leader_.generation(), 1000);
}

// A member that has just noticed the loss asks all others before it asks the first task again.
TEST(Search, TheFirstTaskWaitsForACallAsLongAsASearchMayTake) {
  const Duration search = kAskAttempt * kMostLeaders;
  EXPECT_GE(CallPatience(10s), 10s + search + kCallFirst);
  EXPECT_GT(CallPatience(20s), CallPatience(10s));
}

TEST_F(ElasticStartTest, AfterARestartOfAllTasksThatMayExistDoesNotWait) {
  for (int task = 0; task < 5; ++task) {
    const auto session = static_cast<SessionId>(task + 1);
    ASSERT_EQ(leader_.Connect(now_, task, 10, session), OkStatus());
    leader_.OnMessage(now_, session, JoinRequest{.begins_again = true});
  }
  EXPECT_EQ(leader_.generation(), 1000);
}

// Processes that were replaced fill all places of the generation that worker 1 remembers, but the
// others may have continued without worker 1.
TEST_F(ElasticStartTest, AfterARestartWaitsEvenIfACutOffTaskRemembersAGeneration) {
  const std::vector<PastGeneration> past = {
      {.generation = 7,
       .shared = true,
       .members = {{"worker 0", 1}, {"worker 1", 10}, {"worker 2", 3}}}};
  for (int task = 0; task < 3; ++task) {
    const auto session = static_cast<SessionId>(task + 1);
    ASSERT_EQ(leader_.Connect(now_, task, 10, session), OkStatus());
    JoinRequest join;
    if (task == 1) join = {.step = 5, .state_generation = 7, .last_generation = 7, .past = past};
    leader_.OnMessage(now_, session, join);
  }
  EXPECT_EQ(leader_.generation(), 0);
  Wait(kRules.call_patience - 1ms);
  EXPECT_EQ(leader_.generation(), 0);
  Wait(1ms);
  EXPECT_EQ(leader_.generation(), 1000) << "its state counts as newer than that of the others";
}

// Nobody can connect to worker 1.
TEST_F(ElasticStartTest, PausesATaskToWhichTheOthersCannotConnect) {
  for (int task = 0; task < 3; ++task) Arrive(task);
  ASSERT_EQ(leader_.generation(), 1000);
  leader_.OnMessage(now_, 1, UnreachableReport{.generation = 1000, .rank = 1});
  leader_.OnMessage(now_, 2, UnreachableReport{.generation = 1000, .rank = 2});
  Wait(kRules.connect_patience);
  ASSERT_EQ(leader_.generation(), 1000);
  leader_.Take();
  for (int task = 0; task < 3; ++task) {
    leader_.OnMessage(now_, static_cast<SessionId>(task + 1), JoinRequest());
  }
  ASSERT_EQ(leader_.generation(), 1001);
  std::vector<std::string> members;
  for (const auto& [session, message] : leader_.Take().messages) {
    const auto* form = std::get_if<FormOrder>(&message);
    if (form == nullptr || session != 1) continue;
    for (const Member& member : form->members) members.push_back(member.task);
  }
  EXPECT_EQ(members, (std::vector<std::string>{"worker 0", "worker 2"}));
}

TEST_F(ElasticStartTest, PausesNoTaskIfTooFewWouldRemain) {
  Arrive(0);
  Arrive(1);
  Wait(30s);
  ASSERT_EQ(leader_.generation(), 1000);
  leader_.OnMessage(now_, 1, UnreachableReport{.generation = 1000, .rank = 1});
  Wait(kRules.connect_patience);
  leader_.OnMessage(now_, 1, JoinRequest());
  leader_.OnMessage(now_, 2, JoinRequest());
  Wait(kRules.start_patience);
  EXPECT_EQ(leader_.generation(), 1001);
}

// Worker 2 leads a generation that trains.
TEST(Search, ALeaderOfAnElasticGroupCallsTheFirstTask) {
  const Member self{.task = "worker 2", .incarnation = 1};
  GroupMember member(self, {.task = "worker 0"}, /*shrinks=*/true);
  member.Join({});
  member.Connected(self);
  member.OnMessage(FormOrder{.request = 1, .generation = 1, .members = {self}});
  member.OnMessage(GoOrder{1});
  ASSERT_EQ(member.phase(), GroupMember::Phase::kGoing);
  TaskView view{.task = 2, .shrinks = true, .leads = true, .member = &member};
  EXPECT_FALSE(Searches(view));
  view.call_due = true;
  EXPECT_TRUE(Searches(view));
  EXPECT_EQ(TasksToAsk(view, 5), std::vector<int>{0});
  view.first_follows = true;
  EXPECT_FALSE(Searches(view));
}

TEST_F(ElasticStartTest, WaitsForATaskThatReadsItsDataAsLongAsItIsConnected) {
  Arrive(0);
  Arrive(1);
  ASSERT_EQ(leader_.Connect(now_, 4, 10, 5), OkStatus());
  Wait(60s);
  EXPECT_EQ(leader_.awaited().peers, "worker 4");
  leader_.Disconnect(now_, 5, "the connection broke");
  EXPECT_EQ(leader_.generation(), 1000);
}

}  // namespace
}  // namespace tfjob::collectives
