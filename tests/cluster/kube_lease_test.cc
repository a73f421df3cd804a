// Tests leader election and the events recorder on a real API server. The environment variable
// TFJOB_TEST_KUBECONFIG, which tests/cluster/run.sh sets, names the server's kubeconfig. If the
// variable is not set, the tests are skipped. The tests create objects in the namespace "default",
// under names that are unique to the run, and delete them afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "operator/events/recorder.h"
#include "operator/kube/client/kube_client.h"
#include "operator/kube/config/load.h"
#include "operator/kube/leader/leader_gate.h"
#include "operator/kube/leader/lease.h"
#include "runtime/base/env.h"

namespace tfjob::kube {
namespace {

using objects::Kind;

class RealServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::optional<std::string> kubeconfig = GetEnv("TFJOB_TEST_KUBECONFIG");
    if (!kubeconfig) GTEST_SKIP() << "TFJOB_TEST_KUBECONFIG is not set";
    LoadOptions options;
    options.kubeconfig = *kubeconfig;
    StatusOr<ClusterConfig> config = LoadClusterConfig(options);
    ASSERT_TRUE(config.ok()) << config.status();
    StatusOr<std::unique_ptr<KubeClient>> client = KubeClient::Create(*config, {});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void TearDown() override {
    if (client_ == nullptr) return;
    client_->Delete({Kind::kLease, "default", name_}, {}).IgnoreError();
    for (const std::string& event : events_) {
      client_->Delete({Kind::kEvent, "default", event}, {}).IgnoreError();
    }
  }

  template <typename Condition>
  static bool Eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }

  std::unique_ptr<LeaderElection> MakeElection(const std::string& identity,
                                               LeaseCallbacks callbacks = {}) {
    LeaseOptions options;
    options.name_space = "default";
    options.name = name_;
    options.identity = identity;
    options.lease_duration = 15s;
    options.renew_deadline = 5s;
    options.retry_period = 200ms;
    return *LeaderElection::Create(*client_, options, std::move(callbacks));
  }
  LeaseRecord Stored() {
    StatusOr<Json> lease = client_->GetJson({Kind::kLease, "default", name_});
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *ParseLease(std::make_shared<const Json>(*std::move(lease)))
                      : LeaseRecord();
  }

  const std::string name_ = StrCat("tfjob-test-", std::random_device()());
  std::vector<std::string> events_;
  std::unique_ptr<KubeClient> client_;
};

TEST_F(RealServerTest, OneLeadsAndHandsOverWhenItStops) {
  const auto a = MakeElection("a");
  const auto b = MakeElection("b");
  a->Start();
  ASSERT_TRUE(Eventually([&] { return a->leading(); }));
  b->Start();
  EXPECT_TRUE(Eventually([&] { return b->leader() == "a"; }));
  const Time first = Stored().renew_time;
  EXPECT_TRUE(Eventually([&] { return Stored().renew_time > first; }));
  EXPECT_EQ(Stored().holder, "a");
  EXPECT_EQ(Stored().duration, Duration(15s));
  EXPECT_FALSE(b->leading());
  a->Stop();
  EXPECT_TRUE(Eventually([&] { return b->leading(); }));
  EXPECT_EQ(Stored().transitions, 1);
}

TEST_F(RealServerTest, WhoIsOvertakenLosesAndWritesNoMore) {
  std::atomic<int> lost{0};
  LeaseCallbacks callbacks;
  callbacks.on_lost = [&](const Status&) { ++lost; };
  const auto a = MakeElection("a", std::move(callbacks));
  LeaderGate gate(*client_, a->leadership());
  a->Start();
  ASSERT_TRUE(Eventually([&] { return a->leading(); }));
  const client::Key key{Kind::kLease, "default", name_};
  EXPECT_TRUE(gate.Patch(key, {{"metadata", {{"labels", {{"x", "y"}}}}}}).ok());
  ASSERT_TRUE(client_->Patch(key, {{"spec", {{"holderIdentity", "b"}}}}).ok());
  EXPECT_TRUE(Eventually([&] { return lost == 1; }));
  EXPECT_EQ(gate.Delete(key, {}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Stored().holder, "b");
}

TEST_F(RealServerTest, EventsAreSentCountedAndCombined) {
  events::Recorder recorder(*client_, {});
  objects::Event event;
  event.involved = {"kubeflow.org/v1", "TFJob", "default", name_, "u1", ""};
  event.reason = "TFJobRestarting";
  const auto sent = [&](int64_t calls) {
    return Eventually([&] { return recorder.counters().sent == calls; });
  };
  event.message = "again";
  for (int i = 0; i < 2; ++i) {
    events_.push_back(StrCat(name_, ".", i));
    recorder.Record(events_.back(), event);
    ASSERT_TRUE(sent(i + 1));
  }
  const StatusOr<Json> stored = client_->GetJson({Kind::kEvent, "default", events_[0]});
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ((*stored)["count"], 2);
  EXPECT_EQ(client_->GetJson({Kind::kEvent, "default", events_[1]}).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(recorder.counters().refused, 0);
}

}  // namespace
}  // namespace tfjob::kube
