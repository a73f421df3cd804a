// Tests the leader of a group whose number of tasks may change.
#include <gtest/gtest.h>

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

TEST_F(ElasticStartTest, AfterARestartOfAllTasksThatMayExistDoesNotWait) {
  for (int task = 0; task < 5; ++task) {
    const auto session = static_cast<SessionId>(task + 1);
    ASSERT_EQ(leader_.Connect(now_, task, 10, session), OkStatus());
    leader_.OnMessage(now_, session, JoinRequest{.begins_again = true});
  }
  EXPECT_EQ(leader_.generation(), 1000);
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
