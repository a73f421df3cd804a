// Tests with real servers that a gradient that is too stale changes no values on any server.
#include <gtest/gtest.h>

#include "runtime/ps/test_tasks.h"

namespace tfjob::ps {
namespace {

// Runs two servers, and two tasks whose gradients may be at most one update old.
class StalenessTest : public ParameterServerTest {
 protected:
  void SetUp() override {
    StartServers(2);
    ClientOptions chief = Chief(definition_), worker = Worker(1);
    chief.max_staleness = worker.max_staleness = 1;
    worker.connector = &connector_;
    ASSERT_EQ(chief_.Join(std::move(chief)), OkStatus());
    ASSERT_EQ(worker_.Join(std::move(worker)), OkStatus());
  }

  const Definition definition_ = TwoVariables();
  BreakingConnector connector_;
  Trainer chief_{definition_}, worker_{definition_};
};

TEST_F(StalenessTest, AGradientIsAppliedEverywhereOrNowhere) {
  ASSERT_EQ(chief_.Train(), OkStatus());
  ASSERT_EQ(worker_.Train(), OkStatus());
  EXPECT_FALSE(worker_.last.dropped);
  EXPECT_EQ(worker_.last.staleness, 1);
  EXPECT_EQ(worker_.Value(), 99);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(chief_.Train(), OkStatus());
  ASSERT_EQ(worker_.Train(), OkStatus());
  EXPECT_TRUE(worker_.last.dropped);
  EXPECT_EQ(worker_.last.global_step, 5);
  EXPECT_EQ(worker_.Value(), 97.5f) << "five updates of 0.5, none of them the dropped one";
  ASSERT_EQ(worker_.Train(), OkStatus());
  EXPECT_FALSE(worker_.last.dropped) << "its values were fresh";
  EXPECT_EQ(worker_.last.staleness, 0);
  EXPECT_EQ(worker_.Value(), 97);
}

TEST_F(StalenessTest, AsksAgainIfTheConnectionIsLost) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(chief_.Train(), OkStatus());
  connector_.BreakAfterWrites(0);
  ASSERT_EQ(worker_.Train(), OkStatus());
  EXPECT_GT(connector_.connects, 2);
  EXPECT_TRUE(worker_.last.dropped);
  EXPECT_EQ(worker_.Value(), 99);
}

TEST_F(StalenessTest, TheChiefFillsAServerThatWasLostWhenItAsks) {
  ASSERT_EQ(chief_.Train(), OkStatus());
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  ASSERT_EQ(chief_.Train(), OkStatus());
  EXPECT_FALSE(chief_.last.dropped);
  EXPECT_EQ(chief_.last.global_step, 1);
}

}  // namespace
}  // namespace tfjob::ps
