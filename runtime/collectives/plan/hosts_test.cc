#include "runtime/collectives/plan/hosts.h"

#include <gtest/gtest.h>

namespace tfjob::collectives {
namespace {

TEST(Hosts, NumbersMachinesByTheirLowestRanks) {
  const Hosts hosts({7, 3, 7, 7});
  EXPECT_EQ(hosts.machines(), 2);
  EXPECT_EQ(hosts.RanksOn(0), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(hosts.RanksOn(1), (std::vector<int>{1}));
  EXPECT_EQ(hosts.PlaceOf(2), 1);
  EXPECT_EQ(hosts, Hosts({0, 1, 0, 0}));
  EXPECT_EQ(ToString(hosts), "2 machines: ranks 0 2-3, rank 1");
}

TEST(Hosts, HaveTwoLevelsIfSeveralMachinesRunSeveralRanks) {
  EXPECT_FALSE(Hosts().HasTwoLevels());
  EXPECT_FALSE(Hosts().known());
  EXPECT_FALSE(Hosts({0, 0, 0}).HasTwoLevels());
  EXPECT_FALSE(Hosts({0, 1, 2}).HasTwoLevels());
  EXPECT_TRUE(Hosts({0, 1, 0}).HasTwoLevels());
}

TEST(Hosts, MaximalSubtreesAreNodesOfTheTreeOnOneMachine) {
  using Subtrees = std::vector<Subtree>;
  EXPECT_EQ(MaximalSubtrees(Hosts({0, 0, 1, 1})), (Subtrees{{0, 2, 0}, {2, 4, 1}}));
  // The ranks 1 and 2 are not a node, although they run on one machine.
  EXPECT_EQ(MaximalSubtrees(Hosts({0, 1, 1, 0})),
            (Subtrees{{0, 1, 0}, {1, 2, 1}, {2, 3, 1}, {3, 4, 0}}));
  EXPECT_EQ(MaximalSubtrees(Hosts({0, 0, 0, 1, 1})),
            (Subtrees{{0, 2, 0}, {2, 3, 0}, {3, 4, 1}, {4, 5, 1}}));
  EXPECT_EQ(MaximalSubtrees(Hosts({0, 0, 0})), (Subtrees{{0, 3, 0}}));
  EXPECT_EQ(MaximalSubtrees(Hosts({0, 0, 0, 0, 1})), (Subtrees{{0, 4, 0}, {4, 5, 1}}));
}

TEST(Hosts, AreParsed) {
  EXPECT_EQ(*ParseHosts("a*4,b*2,a", 7), Hosts({0, 0, 0, 0, 1, 1, 0}));
  EXPECT_EQ(*ParseHosts("one", 1), Hosts({0}));
  EXPECT_EQ(ParseHosts("a*2,b*2", 5).status(),
            InvalidArgument("expected the machines of 5 ranks, got 4"));
  EXPECT_EQ(ParseHosts("a*2000000000,b*2000000000", 5).status(),
            InvalidArgument("expected the machines of 5 ranks, got more"));
  for (const char* text : {"", "a,,b", "*3", "a*0", "a*-1", "a*x", "a*2x", "a*99999999999"}) {
    EXPECT_EQ(ParseHosts(text, 3).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace tfjob::collectives
