#include "runtime/strategy/group/losses.h"

#include <gtest/gtest.h>

namespace tfjob::strategy {
namespace {

using Kind = state::PeerEvent::Kind;

class LossesTest : public testing::Test {
 protected:
  static collectives::Member MemberOf(int worker, int64_t incarnation) {
    return {.task = StrCat("worker ", worker),
            .address = StrCat("h:", worker),
            .incarnation = incarnation};
  }
  std::vector<state::PeerEvent> Note(const std::vector<collectives::Member>& members,
                                     int64_t step = 120) {
    std::vector<state::PeerEvent> events;
    losses_.Note(members, step, [&](const state::PeerEvent& event) { events.push_back(event); });
    return events;
  }

  Losses losses_;
};

TEST_F(LossesTest, NameTheTaskTheStepTheReasonAndWhoContinues) {
  EXPECT_TRUE(Note({MemberOf(0, 1), MemberOf(1, 1), MemberOf(2, 1)}).empty());
  losses_.Explain("generation 1 has ended: worker 2 (h:2) was lost: the connection was closed");
  auto events = Note({MemberOf(0, 1), MemberOf(1, 1)});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kDropped);
  EXPECT_EQ(events[0].peer, "worker 2");
  EXPECT_EQ(events[0].message,
            "worker 2 (h:2) was lost at step 120: the connection was closed; 2 tasks continue");
  EXPECT_TRUE(Note({MemberOf(0, 1), MemberOf(1, 1)}).empty()) << "reported once";
  events = Note({MemberOf(0, 1), MemberOf(1, 1), MemberOf(2, 2)});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kRejoined);
  EXPECT_EQ(events[0].message, "worker 2 (h:2) takes part again");
}

TEST_F(LossesTest, ATaskMayReturnWithTheNextGeneration) {
  Note({MemberOf(0, 1), MemberOf(1, 1)});
  losses_.Explain("rank 1 closed its socket");
  const auto events = Note({MemberOf(0, 1), MemberOf(1, 2)}, 7);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(
      events[0].message,
      "worker 1 (h:1) was lost at step 7: rank 1 closed its socket; its new process takes part");
  EXPECT_EQ(events[1].kind, Kind::kRejoined);
}

TEST_F(LossesTest, ATaskThatHasAnnouncedItsExitIsNotLost) {
  Note({MemberOf(0, 1), MemberOf(1, 1)});
  losses_.Depart({MemberOf(1, 1)});
  EXPECT_TRUE(Note({MemberOf(0, 1)}).empty());
  Note({MemberOf(0, 1), MemberOf(1, 2)});
  losses_.Explain("generation 3 has ended: worker 1 was asked to end", /*departs=*/true);
  EXPECT_TRUE(Note({MemberOf(0, 1)}).empty());
  EXPECT_EQ(Note({}).size(), 1u) << "later losses count";
}

}  // namespace
}  // namespace tfjob::strategy
