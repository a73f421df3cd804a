#include "runtime/state/peer.h"

#include <gtest/gtest.h>

namespace tfjob::state {
namespace {

TEST(Peer, HealthSurvivesItsName) {
  for (PeerHealth health : {PeerHealth::kConnected, PeerHealth::kSuspected, PeerHealth::kStuck,
                            PeerHealth::kLost, PeerHealth::kUnknown}) {
    EXPECT_EQ(ParsePeerHealth(Name(health)), health) << Name(health);
  }
  EXPECT_EQ(ParsePeerHealth("anything else"), PeerHealth::kUnknown);
}

TEST(Peer, HealthHasTheNamesOfTheWire) {
  const std::pair<PeerHealth, const char*> cases[] = {{PeerHealth::kConnected, "connected"},
                                                      {PeerHealth::kSuspected, "suspected"},
                                                      {PeerHealth::kStuck, "stuck"},
                                                      {PeerHealth::kLost, "lost"},
                                                      {PeerHealth::kUnknown, "unknown"}};
  for (const auto& [health, name] : cases) EXPECT_EQ(Name(health), name);
}

TEST(Peer, TheRoleFollowsFromTheWholeType) {
  EXPECT_EQ(RoleOfTask("/job:ps/task:12"), PeerRole::kServes);
  for (const char* task : {"", "ps", "/job:ps", "/job:psychic/task:0", "/job:worker/task:1"}) {
    EXPECT_EQ(RoleOfTask(task), PeerRole::kTrains) << task;
  }
}

TEST(Peer, OnlyServersServe) {
  EXPECT_EQ(PeerOf("ps", 1),
            (PeerState{.task = "/job:ps/task:1", .role = PeerRole::kServes, .address = ""}));
  for (const char* type : {"chief", "master", "worker"}) {
    EXPECT_EQ(PeerOf(type, 0).role, PeerRole::kTrains) << type;
  }
}

}  // namespace
}  // namespace tfjob::state
