// Tests leaders other than the first task.
#include <gtest/gtest.h>

#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/test_leader.h"

namespace tfjob::collectives {
namespace {

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

// The first task reads its data for a minute before it joins. The other tasks connect only after
// this minute.
TEST_F(TakeoverTest, TheFirstTaskWaitsForMembersFromTheTimeWhenItJoins) {
  Leader first(
      {{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}, {.task = "worker 3"}},
      {.shrinks = true});
  const std::vector<PastGeneration> past = {
      {.generation = 7,
       .shared = true,
       .members = {{"worker 1", 11}, {"worker 2", 12}, {"worker 3", 13}}}};
  const auto join = [&](int task, const JoinRequest& request) {
    const auto session = static_cast<SessionId>(task + 1);
    if (task > 0) {
      ASSERT_EQ(first.Connect(now_, task, 10 + task, session), OkStatus());
    }
    first.OnMessage(now_, session, request);
  };
  ASSERT_EQ(first.Connect(now_, 0, 99, 1), OkStatus());
  now_ += 60s;
  join(0, {});
  const JoinRequest remembers{.step = 5, .state_generation = 7, .last_generation = 7, .past = past};
  join(1, remembers);
  join(2, remembers);
  EXPECT_EQ(first.generation(), 0) << "worker 3 may still connect";
  now_ += 3s - 1ms;
  first.Tick(now_);
  EXPECT_EQ(first.generation(), 0);
  now_ += 1ms;
  first.Tick(now_);
  EXPECT_EQ(first.generation(), 8);
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

// A later generation has begun. Even if it may never have been complete, its members could also
// continue on their own, so the new leader needs a majority of that generation, too.
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

TEST_F(TakeoverTest, AFirstTaskThatReturnsStepsAsideIfItCannotConnectToTheOthers) {
  Leader first({{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}},
               {.shrinks = true});
  const std::vector<PastGeneration> past = {
      {.generation = 7, .shared = true, .members = {{"worker 1", 11}, {"worker 2", 12}}}};
  const JoinRequest returns,
      remembers{.step = 5, .state_generation = 7, .last_generation = 7, .past = past};
  for (int task = 0; task < 3; ++task) {
    const auto session = static_cast<SessionId>(task + 1);
    ASSERT_EQ(first.Connect(now_, task, task == 0 ? 99 : 10 + task, session), OkStatus());
    first.OnMessage(now_, session, task == 0 ? returns : remembers);
  }
  EXPECT_EQ(first.generation(), 8);
  first.OnMessage(now_, 2, ReadyReport{8});
  now_ += 19s;
  first.Tick(now_);
  EXPECT_FALSE(first.ShouldStepAside());
  now_ += 1s;
  first.Tick(now_);
  EXPECT_TRUE(first.ShouldStepAside());
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
  EXPECT_FALSE(next_.HasMajority(past, [](SessionId) { return false; })) << "worker 2 is silent";
  EXPECT_TRUE(next_.HasMajority(past, [](SessionId session) { return session == 3; }));
  next_.Disconnect(now_, 3, "the connection broke");
  EXPECT_FALSE(next_.HasMajority(past));
  Connect(2, 5);
  EXPECT_FALSE(next_.HasMajority(past)) << "it may have been in another generation meanwhile";
}

// The leader is asked to stop while it waits for worker 2, and saves its state before it departs.
TEST_F(ShrinkingTest, ALeaderThatHoldsBackFormsNoGenerationAndKeepsItsMajority) {
  leader_.OnMessage(now_, 3, DepartNotice());
  Join(1);
  leader_.HoldBack(now_);
  Join(2);
  EXPECT_EQ(Formed(), "");
  EXPECT_TRUE(leader_.HasMajority(past_));
  leader_.OnMessage(now_, 2, DepartNotice());
  EXPECT_TRUE(leader_.HasMajority(past_)) << "the others have resigned";
  Join(1);
  EXPECT_EQ(Formed(), "0") << "it joins again";
  leader_.HoldBack(now_);
  EXPECT_FALSE(leader_.goes()) << "the generation that was forming is withdrawn";
  leader_.OnMessage(now_, 1, ReadyReport{leader_.generation()});
  EXPECT_FALSE(leader_.goes());
}

}  // namespace
}  // namespace tfjob::collectives
