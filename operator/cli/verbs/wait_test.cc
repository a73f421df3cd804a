#include "operator/cli/verbs/wait.h"

#include <gtest/gtest.h>

#include <thread>

#include "operator/cli/verbs/testing.h"
#include "operator/client/forwarding_client.h"

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

// Simulates a watch that breaks at once, misses the changes that `missed` makes, and lists again.
class BrokenWatch : public client::ForwardingClient {
 public:
  using ForwardingClient::ForwardingClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(objects::Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    sink.OnReplaced(*List(kind, name_space, selector));
    missed();
    sink.OnReplaced(*List(kind, name_space, selector));
    return std::make_unique<client::Subscription>();
  }

  std::function<void()> missed;
};

TEST_F(WaitTest, AJobThatWasCreatedAgainIsAnotherJob) {
  const struct {
    const char* goal;
    int code;
    const char* out;
    const char* err;
  } cases[] = {
      {"delete", view::kSucceeded, "tfjob.kubeflow.org/mnist condition met\n", ""},
      {"Succeeded", view::kFailed, "", "tfjob: ns/mnist: it was deleted before it was Succeeded\n"},
  };
  for (const auto& each : cases) {
    testing::World world;
    BrokenWatch watch(world.cluster.store());
    world.cluster.CreateJob("mnist", "{Worker: {}}");
    watch.missed = [&] {
      EXPECT_TRUE(world.cluster.store().Delete({Kind::kTFJob, "ns", "mnist"}, {}).ok());
      world.cluster.CreateJob("mnist", "{Worker: {}}",
                              "{" + Conditions({{"Succeeded", "True"}}) + "}");
    };
    world.cluster.Serve(watch);
    std::thread timeout([&] {  // ends a wait that would last forever
      for (int i = 0; i < 200 && !world.stop.WaitFor(50ms); ++i) {
      }
      world.stop.Request(2);
    });
    EXPECT_EQ(Wait({{"mnist"}, Goals({each.goal}), std::nullopt}, world.context), each.code);
    world.stop.Request(2);
    timeout.join();
    EXPECT_EQ(world.Out(), each.out);
    EXPECT_EQ(world.Err(), each.err);
  }
}

// Simulates a server that refuses to list and watch jobs. Like a real client that keeps retrying,
// it calls no sink.
class GetOnly : public client::ForwardingClient {
 public:
  using ForwardingClient::ForwardingClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(objects::Kind, const std::string&,
                                                            const client::LabelSelector&,
                                                            client::WatchSink&) override {
    return std::make_unique<client::Subscription>();
  }
  StatusOr<client::Object> Get(const client::Key& key) override {
    if (++gets_ == 2) return Unavailable("away for a moment");
    if (gets_ == 3) change();
    return ForwardingClient::Get(key);
  }

  std::function<void()> change;  // called before the third read

 private:
  int gets_ = 0;
};

TEST_F(WaitTest, ReadsTheJobsOfAUserWhoMayNotWatch) {
  world_.cluster.CreateJob("mnist", "{Worker: {}}");
  GetOnly server(world_.cluster.store());
  server.change = [this] { Become({{"Succeeded", "True"}}); };
  world_.cluster.Serve(server);
  EXPECT_EQ(Call({"Succeeded"}, std::nullopt), view::kSucceeded) << world_.Err();
}

TEST(WaitGoalTest, RefusesOtherWords) {
  for (const char* text : {"", "Done", "condition=", "condition=Done", "condition=Running=maybe"}) {
    EXPECT_FALSE(WaitGoal::Parse(text).ok()) << text;
  }
  EXPECT_EQ(WaitGoal::Parse("condition=suspended=False")->ToString(), "not Suspended");
}

}  // namespace
}  // namespace tfjob::cli
