// Provides fixtures for tests of a group's leader. The tests report events to the leader, and check
// its messages.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/collectives/membership/leader.h"

namespace tfjob::collectives {

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

// A group of three that continues without lost members: the leader, in session 1, and two tasks.
class ShrinkingTest : public testing::Test {
 protected:
  ShrinkingTest()
      : ShrinkingTest({{.task = "worker 0"}, {.task = "worker 1"}, {.task = "worker 2"}},
                      {.shrinks = true}) {}
  // The first three of these tasks form the group.
  ShrinkingTest(std::vector<Member> tasks, LeaderRules rules) : leader_(std::move(tasks), rules) {}
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
  // Returns the names of the forming generation's members.
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
  Leader leader_;
  int64_t generation_ = 0;
  std::vector<Participant> formed_;   // the members of the latest generation that has formed
  std::vector<PastGeneration> past_;  // what the members remember
};

}  // namespace tfjob::collectives
