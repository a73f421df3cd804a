#include "operator/cli/verbs/wait.h"

#include <gtest/gtest.h>

#include <thread>

#include "operator/cli/verbs/testing.h"

namespace tfjob::cli {
namespace {

using objects::Kind;
using testing::Conditions;

std::vector<WaitGoal> Goals(const std::vector<std::string>& texts) {
  std::vector<WaitGoal> goals;
  for (const std::string& text : texts) goals.push_back(*WaitGoal::Parse(text));
  return goals;
}

class WaitTest : public ::testing::Test {
 protected:
  void Become(const std::vector<std::pair<std::string, std::string>>& conditions) {
    world_.cluster.WriteStatus(Kind::kTFJob, "mnist", "{" + Conditions(conditions) + "}");
  }
  int Call(const std::vector<std::string>& goals, std::optional<Duration> timeout = 20s) {
    return Wait({{"mnist"}, Goals(goals), timeout}, world_.context);
  }

  testing::World world_;
};

TEST_F(WaitTest, ReturnsWhenTheConditionIsMet) {
  world_.cluster.CreateJob("mnist", "{Worker: {}}");
  std::thread operator_thread([this] {
    Become({{"Created", "True"}});
    Become({{"Created", "True"}, {"Running", "True"}});
  });
  EXPECT_EQ(Call({"running"}), view::kSucceeded) << world_.Err();
  operator_thread.join();
  EXPECT_EQ(world_.Out(), "tfjob.kubeflow.org/mnist condition met\n");
  EXPECT_EQ(Call({"condition=Suspended=false", "condition=Running"}), view::kSucceeded);
}

TEST_F(WaitTest, EndsAtOnceWhenItNeverWillBe) {
  world_.cluster.CreateJob("mnist", "{Worker: {}}");
  std::thread operator_thread([this] { Become({{"Running", "False"}, {"Failed", "True"}}); });
  EXPECT_EQ(Call({"Succeeded"}, std::nullopt), view::kFailed);
  operator_thread.join();
  EXPECT_EQ(
      world_.Err(),
      "tfjob: ns/mnist: it is Failed and will never be Succeeded: TFJob ns/mnist is Failed.\n");
  EXPECT_EQ(Call({"Succeeded", "Failed"}), view::kSucceeded);
}

TEST_F(WaitTest, TheTimeIsUp) {
  world_.cluster.CreateJob("mnist", "{Worker: {}}");
  EXPECT_EQ(Call({"Succeeded"}, 0s), view::kFailed);
  EXPECT_EQ(world_.Err(),
            "tfjob: ns/mnist: it is not Succeeded after 0s; tfjob describe mnist shows why\n");
  world_.stop.Request(2);
  EXPECT_EQ(Call({"Succeeded"}, std::nullopt), view::kFailed);
  EXPECT_NE(world_.Err().find(", and the wait was stopped"), std::string::npos);
}

TEST_F(WaitTest, ADeletedJobReachesNothingButDeletion) {
  world_.cluster.CreateJob("mnist", "{Worker: {}}");
  const auto remove = [this] {
    EXPECT_TRUE(world_.cluster.store().Delete({Kind::kTFJob, "ns", "mnist"}, {}).ok());
  };
  std::thread first(remove);
  EXPECT_EQ(Call({"Succeeded"}), view::kFailed);
  first.join();
  EXPECT_EQ(Call({"delete"}), view::kSucceeded);
  world_.cluster.CreateJob("mnist", "{Worker: {}}");
  std::thread second(remove);
  EXPECT_EQ(Call({"delete"}), view::kSucceeded) << world_.Err();
  second.join();
  EXPECT_EQ(Call({"Succeeded"}), view::kFailed);
  EXPECT_NE(world_.Err().find("there is no TFJob ns/mnist"), std::string::npos);
}

TEST(WaitGoalTest, RefusesOtherWords) {
  for (const char* text : {"", "Done", "condition=", "condition=Done", "condition=Running=maybe"}) {
    EXPECT_FALSE(WaitGoal::Parse(text).ok()) << text;
  }
  EXPECT_EQ(WaitGoal::Parse("condition=suspended=False")->ToString(), "not Suspended");
}

}  // namespace
}  // namespace tfjob::cli
