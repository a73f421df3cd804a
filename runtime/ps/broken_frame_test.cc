// Tests how a chief and its servers recover if a connection between them breaks within a frame of
// gradients or values.
#include <gtest/gtest.h>

#include "runtime/ps/test_relay.h"
#include "runtime/ps/test_tasks.h"

namespace tfjob::ps {
namespace {

class BrokenFrameTest : public ParameterServerTest, public testing::WithParamInterface<Mode> {
 protected:
  BrokenFrameTest() {
    for (int i = 0; i < 3; ++i) {
      definition_.state.variables.push_back({.name = StrCat("v", i), .shape = {300'000}});
    }
    definition_.state.optimizer.learning_rate = 0.5;
    definition_.mode = GetParam();
  }
  Definition definition_;
};

TEST_P(BrokenFrameTest, EveryContributionIsAppliedOnce) {
  StartServers(1);
  BreakingRelay relay(servers_[0]);
  Trainer chief(definition_);
  ClientOptions options = Chief(definition_);
  options.servers = {relay.address()};
  ASSERT_EQ(chief.Join(options), OkStatus());
  int64_t step = 0;
  // The connection breaks within the first header, after it, within the first value, between two
  // values, and within the last value.
  for (const int64_t bytes : {7, 57, 60, 500'001, 1'300'000, 3'600'000}) {
    for (const bool to_server : {false, true}) {
      const int before = relay.broken;
      to_server ? relay.BreakAfterBytesToServer(bytes) : relay.BreakAfterBytesToClients(bytes);
      ASSERT_EQ(chief.Train(), OkStatus());
      ++step;
      EXPECT_EQ(relay.broken, before + 1) << "nothing broke at " << bytes;
      EXPECT_EQ(chief.last.global_step, step);
      EXPECT_FALSE(chief.last.dropped);
      EXPECT_EQ(chief.Value(), 100 - 0.5f * static_cast<float>(step)) << bytes << to_server;
    }
  }
}

TEST_P(BrokenFrameTest, ALossWithinAFrameIsNamed) {
  StartServers(1);
  BreakingRelay relay(servers_[0]);
  Trainer chief(definition_);
  ClientOptions options = Chief(definition_);
  options.servers = {relay.address()};
  ASSERT_EQ(chief.Join(options), OkStatus());
  relay.BreakAfterBytesToClients(500'001);
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_TRUE(chief.events.Said(StrCat("ps 0 (", relay.address(), ") was lost while its answer")));
}

INSTANTIATE_TEST_SUITE_P(Modes, BrokenFrameTest,
                         testing::Values(Mode::kAsynchronous, Mode::kSynchronous));

}  // namespace
}  // namespace tfjob::ps
