// Tests how contributions of processes that have crashed are freed.
#include <gtest/gtest.h>

#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/protocol/participant.h"

namespace tfjob::ps::protocol {
namespace {

using Messages = std::vector<std::pair<int, ToParticipant>>;

constexpr int64_t kEpoch = 1, kStep = 5;
const Worker kTask{"worker", 0};
const Name kOld{kTask, 1, 7}, kNew{kTask, 2, 1};

ToCoordinator Staged(const Name& name) {
  return StagedReport{kEpoch, kStep, name, 0};
}

class ForgetTest : public testing::Test {
 protected:
  ForgetTest() {
    coordinator_.Fill(kEpoch, kStep, 2);
    for (int server : {0, 1}) coordinator_.OnMessage(server, Hello{10, kEpoch, kStep});
    coordinator_.Join(kTask, 1);
  }
  Coordinator coordinator_{2};
};

TEST_F(ForgetTest, ServersFreeWhatOnlySomeOfThemHaveWhenALaterProcessJoins) {
  EXPECT_TRUE(coordinator_.OnMessage(0, Staged(kOld)).messages.empty());
  const Messages forget = {{0, Forget{kEpoch, kStep, kOld}}};
  EXPECT_EQ(coordinator_.Join(kTask, 2).messages, forget);
  // The server reports the contribution again, because the Forget message was lost or the
  // contribution arrived later.
  EXPECT_EQ(coordinator_.OnMessage(0, Staged(kOld)).messages, forget);
  EXPECT_EQ(coordinator_.OnMessage(1, Staged(kOld)).messages,
            (Messages{{1, Forget{kEpoch, kStep, kOld}}}));
  EXPECT_TRUE(coordinator_.OnMessage(1, Staged(kNew)).messages.empty());
}

TEST_F(ForgetTest, ServersKeepWhatAllOfThemHave) {
  for (int server : {0, 1}) coordinator_.OnMessage(server, Staged(kOld));
  EXPECT_TRUE(coordinator_.Join(kTask, 2).messages.empty());
  EXPECT_TRUE(coordinator_.OnMessage(0, Staged(kOld)).messages.empty());
  coordinator_.OnMessage(0, Staged(kNew));
  const CoordinatorActions actions = coordinator_.OnMessage(1, Staged(kNew));
  ASSERT_FALSE(actions.messages.empty());
  EXPECT_EQ(std::get<Commit>(actions.messages[0].second).set, (std::vector<Name>{kOld, kNew}));
}

class ForgettingParticipantTest : public testing::Test {
 protected:
  ForgettingParticipantTest() {
    participant_.Fill(Duration(0), kEpoch, kStep);
    for (const Name& name : {kOld, kNew}) participant_.Staged(kEpoch, kStep, name);
  }
  std::vector<Name> Forgotten(const ToParticipant& message) {
    const ParticipantActions actions = participant_.OnMessage(message);
    EXPECT_EQ(actions.refused, actions.forget) << "an exchange that lasts must end";
    return actions.forget;
  }
  Participant participant_{10};
};

TEST_F(ForgettingParticipantTest, FreesAContributionOnce) {
  const ToParticipant forget = Forget{kEpoch, kStep, kOld};
  EXPECT_EQ(Forgotten(forget), std::vector<Name>{kOld});
  EXPECT_TRUE(Forgotten(forget).empty());
  EXPECT_TRUE(participant_.Wants(kEpoch, kStep, kOld));
  EXPECT_FALSE(participant_.Wants(kEpoch, kStep, kNew));
}

TEST_F(ForgettingParticipantTest, IgnoresMessagesOfOtherEpochsAndSteps) {
  EXPECT_TRUE(Forgotten(Forget{kEpoch + 1, kStep, kOld}).empty());
  EXPECT_TRUE(Forgotten(Forget{kEpoch, kStep - 1, kOld}).empty());
}

// Only a ps 0 that violates the protocol requests that a server forget bytes that are in use.
TEST_F(ForgettingParticipantTest, KeepsWhatIsBeingUsed) {
  ASSERT_TRUE(participant_.OnMessage(Merge{kEpoch, kStep, kNew, kOld}).merge);
  EXPECT_TRUE(Forgotten(Forget{kEpoch, kStep, kOld}).empty());
  ASSERT_TRUE(participant_.OnMessage(Commit{kEpoch, kStep, {kOld, kNew}, false}).apply);
  EXPECT_TRUE(Forgotten(Forget{kEpoch, kStep, kNew}).empty());
}

}  // namespace
}  // namespace tfjob::ps::protocol
