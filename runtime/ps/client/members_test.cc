#include "runtime/ps/client/members.h"

#include <gtest/gtest.h>

namespace tfjob::ps {
namespace {

using state::PeerHealth;

state::PeerState Worker(int index, PeerHealth health) {
  state::PeerState peer = state::PeerOf("worker", index);
  peer.health = health;
  return peer;
}

TEST(Members, ATaskThatARestartedServerDoesNotKnowYetStaysForAWhile) {
  const SteadyTime start{};
  Members members;
  members.Take({Worker(0, PeerHealth::kConnected), Worker(1, PeerHealth::kLost)}, start, 10s);
  members.Take({}, start + 1s, 10s);
  EXPECT_EQ(members.list(), std::vector{Worker(0, PeerHealth::kUnknown)});
  members.Take({}, start + 10s, 10s);
  EXPECT_EQ(members.list(), std::vector{Worker(0, PeerHealth::kUnknown)});
  members.Take({}, start + 11s, 10s);
  EXPECT_TRUE(members.list().empty());
}

TEST(Members, ATaskIsWhatTheServerSaysAsSoonAsItIsListedAgain) {
  const SteadyTime start{};
  Members members;
  members.Take({Worker(0, PeerHealth::kConnected)}, start, 10s);
  members.Take({}, start + 1s, 10s);
  members.Take({Worker(0, PeerHealth::kConnected)}, start + 2s, 10s);
  EXPECT_EQ(members.list(), std::vector{Worker(0, PeerHealth::kConnected)});
  members.Take({}, start + 11s, 10s);
  EXPECT_EQ(members.list(), std::vector{Worker(0, PeerHealth::kUnknown)}) << "missing for 0 s";
  members.Take({Worker(0, PeerHealth::kLost)}, start + 12s, 10s);
  EXPECT_EQ(members.list(), std::vector{Worker(0, PeerHealth::kLost)});
}

}  // namespace
}  // namespace tfjob::ps
