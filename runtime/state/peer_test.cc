#include "runtime/state/peer.h"

#include <gtest/gtest.h>

namespace tfjob::state {
namespace {

TEST(Peer, HealthSurvivesItsName) {
  for (PeerHealth health :
       {PeerHealth::kConnected, PeerHealth::kSuspected, PeerHealth::kLost, PeerHealth::kUnknown}) {
    EXPECT_EQ(ParsePeerHealth(Name(health)), health) << Name(health);
  }
  EXPECT_EQ(ParsePeerHealth("anything else"), PeerHealth::kUnknown);
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
