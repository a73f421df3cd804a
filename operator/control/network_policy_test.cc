// Tests that the operator does not mistake a late event for a change by another client. The watch
// for NetworkPolicies may report states that are older than the operator's last change.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/control/test_manager.h"

namespace tfjob::control {
namespace {

using objects::Kind;

// Delays the reports of a watch while `is_late` is true.
class LateSink : public client::WatchSink {
 public:
  explicit LateSink(client::WatchSink& inner) : inner_(inner) {}
  void OnReplaced(std::vector<client::Object> objects) override {
    inner_.OnReplaced(std::move(objects));
  }
  void OnUpserted(client::Object object) override {
    if (is_late) return held_.push_back(std::move(object));
    inner_.OnUpserted(std::move(object));
  }
  void OnDeleted(client::Object last_state) override { inner_.OnDeleted(std::move(last_state)); }

  void CatchUp() {
    is_late = false;
    for (client::Object& object : std::exchange(held_, {})) inner_.OnUpserted(std::move(object));
  }

  bool is_late = false;

 private:
  client::WatchSink& inner_;
  std::vector<client::Object> held_;
};

class LatePoliciesClient : public client::FaultyClient {
 public:
  using FaultyClient::FaultyClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    if (kind != Kind::kNetworkPolicy)
      return FaultyClient::Subscribe(kind, name_space, selector, sink);
    policies = std::make_unique<LateSink>(sink);
    return FaultyClient::Subscribe(kind, name_space, selector, *policies);
  }
  std::unique_ptr<LateSink> policies;
};

class LatePoliciesTest : public ::testing::Test, public SteppedManager<LatePoliciesClient> {
 protected:
  LatePoliciesTest() {
    options.settings.policy.network_policies = policy::NetworkPolicies::kAll;
    Start();
    Create(fixtures::Job("a", 1));
    Rest();
  }

  int Patches() { return Count(client::Verb::kPatch, Kind::kNetworkPolicy); }
  // Changes a label of the job, so that the job is reconciled for a reason other than the policy.
  void LabelJob(const char* value) {
    const Json patch = {{"metadata", {{"labels", {{"n", value}}}}}};
    ASSERT_TRUE(store.Patch({Kind::kTFJob, "ns", "a"}, patch).ok());
    Rest();
  }
  void OpenPolicy() {
    const Json patch = {{"spec", {{"ingress", Json::array({Json::object()})}}}};
    ASSERT_TRUE(store.Patch({Kind::kNetworkPolicy, "ns", "a-tasks"}, patch).ok());
    store.Deliver();
  }
};

TEST_F(LatePoliciesTest, AnOwnChangeThatTheWatchDoesNotShowYetIsNotRepeated) {
  OpenPolicy();
  client.policies->is_late = true;
  Rest();
  EXPECT_EQ(Patches(), 1);
  clock.Advance(2s);  // the delay before a second change
  LabelJob("1");
  EXPECT_EQ(Patches(), 1);
  clock.Advance(10s);  // the operator reads what the watch should have reported
  Rest();
  EXPECT_EQ(Patches(), 1);
  client.policies->CatchUp();
  clock.Advance(10s);
  Rest();
  EXPECT_EQ(Patches(), 1);
}

TEST_F(LatePoliciesTest, AChangeBackThatTheWatchDoesNotShowIsFound) {
  OpenPolicy();
  client.policies->is_late = true;
  Rest();
  OpenPolicy();
  Rest();
  EXPECT_EQ(Patches(), 1);
  clock.Advance(10s);
  Rest();
  EXPECT_EQ(Patches(), 2);
  client.policies->CatchUp();
  clock.Advance(10s);
  Rest();
  EXPECT_EQ(Patches(), 2);
}

}  // namespace
}  // namespace tfjob::control
