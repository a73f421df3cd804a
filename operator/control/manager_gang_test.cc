// Tests the manager on jobs with a gang or a NetworkPolicy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/client/faults.h"
#include "operator/control/manager.h"
#include "operator/control/test_fixtures.h"
#include "operator/local/store/store.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/log.h"

namespace tfjob::control {
namespace {

using fixtures::CountPods;
using fixtures::DeliveredByHand;
using fixtures::Job;
using objects::Kind;

// If a job is deleted while the watch of jobs is behind, its pod group must not be recreated,
// although the watch of pod groups reports immediately that the garbage collector deleted it.
TEST(PodGroups, OfADeletedJobIsNotMadeAgainAndAgainWhileTheWatchOfJobsIsBehind) {
  FakeClock clock(*ParseTime("2026-11-21T09:30:00Z"));
  store::StoreOptions store_options = DeliveredByHand(clock);
  store_options.keep_changes = true;
  store::Store store(store_options);
  client::FaultyClient client(store);
  ManagerOptions options;
  options.workers = 0;
  options.parallel_writes = 0;
  options.clock = &clock;
  options.settings.address = render::ClusterDns("");
  const auto manager = *Manager::Start(client, options);
  Json job = Job("a", 1);
  job["metadata"]["annotations"] = {{"tfjob.dev/gang-scheduler", "scheduler-plugins"}};
  ASSERT_TRUE(store.Create(Kind::kTFJob, job).ok());
  store.Deliver();
  store.CutWatches();
  const auto run = [&] {
    for (int i = 0; i < 50; ++i) {
      manager->Step();
      store.Deliver();
      if (i % 10 == 0) clock.Advance(100ms);
    }
  };
  run();              // the first reconcile subscribes to pod groups
  clock.Advance(1s);  // a timer wakes the job again after its deletion
  ASSERT_EQ(store.List(Kind::kCoschedulingPodGroup, "ns", {})->size(), 1u);
  ASSERT_TRUE(store.Delete({Kind::kTFJob, "ns", "a"}, {}).ok());
  run();
  int made = 0;
  for (const client::Call& call : client.Calls()) {
    made += call.verb == client::Verb::kCreate && call.key.kind == Kind::kCoschedulingPodGroup;
  }
  EXPECT_EQ(made, 1);
}

// Does not report that jobs were deleted, as if the watch of jobs were behind.
class BehindWithDeletedJobs : public client::FaultyClient {
 public:
  using FaultyClient::FaultyClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    if (kind != Kind::kTFJob) return FaultyClient::Subscribe(kind, name_space, selector, sink);
    jobs_ = std::make_unique<Sink>(sink);
    return FaultyClient::Subscribe(kind, name_space, selector, *jobs_);
  }

 private:
  struct Sink : client::WatchSink {
    explicit Sink(client::WatchSink& sink) : sink(sink) {}
    void OnReplaced(std::vector<client::Object> objects) override {
      sink.OnReplaced(std::move(objects));
    }
    void OnUpserted(client::Object object) override { sink.OnUpserted(std::move(object)); }
    void OnDeleted(client::Object) override {}
    client::WatchSink& sink;
  };
  std::unique_ptr<Sink> jobs_;
};

TEST(NetworkPolicies, OfADeletedJobIsNotMadeAgainAndAgainWhileTheWatchOfJobsIsBehind) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  FakeClock clock(*ParseTime("2026-11-21T09:30:00Z"));
  store::Store store(DeliveredByHand(clock));
  BehindWithDeletedJobs client(store);
  ManagerOptions options;
  options.workers = options.parallel_writes = 0;
  options.clock = &clock;
  options.settings.address = render::ClusterDns("");
  options.settings.policy.network_policies = policy::NetworkPolicies::kAll;
  const auto manager = *Manager::Start(client, options);
  const auto run = [&] {
    for (int i = 0; i < 50; ++i) {
      manager->Step();
      store.Deliver();
      if (i % 10 == 0) clock.Advance(100ms);
    }
  };
  ASSERT_TRUE(store.Create(Kind::kTFJob, Job("a", 1)).ok());
  run();
  ASSERT_EQ(store.List(Kind::kNetworkPolicy, "ns", {})->size(), 1u);
  ASSERT_TRUE(store.Delete({Kind::kTFJob, "ns", "a"}, {}).ok());
  run();
  int made = 0;
  for (const client::Call& call : client.Calls()) {
    made += call.verb == client::Verb::kCreate && call.key.kind == Kind::kNetworkPolicy;
  }
  EXPECT_EQ(made, 1);
}

// Simulates a server that silently drops spec.schedulingGroup because its feature gate is off.
class PruningClient : public client::FaultyClient {
 public:
  using FaultyClient::FaultyClient;
  StatusOr<client::Object> Create(Kind kind, const Json& object) override {
    Json kept = object;
    if (kind == Kind::kPod) kept["spec"].erase("schedulingGroup");
    return FaultyClient::Create(kind, kept);
  }
};

TEST(NativeGang, SaysOnceWhenTheServerDropsTheMembership) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  FakeClock clock{*ParseTime("2026-11-21T09:30:00Z")};
  store::Store store({.clock = &clock, .deliver_by_hand = true, .node_name = "node-1"});
  PruningClient client(store);
  ManagerOptions options;
  options.workers = 0;
  options.parallel_writes = 0;
  options.clock = &clock;
  options.discovery = &store;
  options.settings.address = render::ClusterDns("");
  options.settings.policy.gang = policy::GangFromFlag("native");
  auto manager = *Manager::Start(client, options);
  ASSERT_TRUE(store.Create(Kind::kTFJob, Job("a", 2)).ok());
  while (store.Deliver() + (manager->Step() ? 1 : 0) > 0) {
  }
  EXPECT_EQ(CountPods(store), 2u);
  int told = 0;
  const std::vector<client::Object> events = *store.List(Kind::kEvent, "ns", {});
  for (const client::Object& event : events) {
    const auto& json = *client::As<objects::CustomResource>(event)->object;
    told += json["reason"] == "SchedulingGroupDropped" ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

// Simulates a server without Volcano's API: the list never arrives, and groups cannot be created.
class WithoutVolcano : public client::FaultyClient {
 public:
  using FaultyClient::FaultyClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    if (kind == Kind::kPodGroup) return std::make_unique<client::Subscription>();
    return FaultyClient::Subscribe(kind, name_space, selector, sink);
  }
  StatusOr<client::Object> Create(Kind kind, const Json& object) override {
    if (kind == Kind::kPodGroup) return NotFound("the server has no PodGroups");
    return FaultyClient::Create(kind, object);
  }
};

TEST(GangScheduling, AMissingApiHoldsBackOnlyTheJobsWithAGang) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  FakeClock clock{*ParseTime("2026-11-21T09:30:00Z")};
  store::Store store(DeliveredByHand(clock));
  WithoutVolcano client(store);
  ManagerOptions options;
  options.workers = options.parallel_writes = 0;
  options.clock = &clock;
  options.settings.address = render::ClusterDns("");
  options.settings.policy.gang = policy::GangFromFlag("volcano");
  const auto manager = *Manager::Start(client, options);
  const auto rest = [&] {
    while (store.Deliver() + (manager->Step() ? 1 : 0) > 0) {
    }
  };
  Json alone = Job("alone", 2);
  alone["metadata"]["annotations"] = {{"tfjob.dev/gang-scheduler", "none"}};
  ASSERT_TRUE(store.Create(Kind::kTFJob, alone).ok());
  ASSERT_TRUE(store.Create(Kind::kTFJob, Job("gang", 2)).ok());
  rest();
  EXPECT_EQ(CountPods(store), 2u);
  EXPECT_FALSE(manager->Synced());
  EXPECT_EQ(manager->Waiting(), std::vector<std::string>{"PodGroup"});
  // The job with a gang eventually reports why it has no pods.
  for (int i = 0; i < 32; ++i) {
    clock.Advance(1s);
    rest();
  }
  EXPECT_EQ(CountPods(store), 2u);
  const Json job = *store.GetJson({Kind::kTFJob, "ns", "gang"});
  EXPECT_THAT(job["status"]["conditions"].back()["message"].get<std::string>(),
              testing::HasSubstr("the server has no PodGroups"));
}

// Simulates an operator that lacks permissions for network policies: the list never arrives, and
// policies cannot be created.
class WithoutNetworkPolicies : public client::FaultyClient {
 public:
  using FaultyClient::FaultyClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    if (kind == Kind::kNetworkPolicy) {
      EXPECT_FALSE(selector.empty());
      ++watches;
      return std::make_unique<client::Subscription>();
    }
    return FaultyClient::Subscribe(kind, name_space, selector, sink);
  }
  StatusOr<client::Object> Create(Kind kind, const Json& object) override {
    if (kind == Kind::kNetworkPolicy) return PermissionDenied("networkpolicies is forbidden");
    return FaultyClient::Create(kind, object);
  }
  int watches = 0;
};

TEST(NetworkPolicies, AMissingPermissionHoldsBackOnlyTheJobsThatWantOne) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  using enum policy::NetworkPolicies;
  for (const policy::NetworkPolicies setting : {kNone, kIgnored, kAnnotated, kAll}) {
    FakeClock clock{*ParseTime("2026-11-21T09:30:00Z")};
    store::Store store(DeliveredByHand(clock));
    WithoutNetworkPolicies client(store);
    ManagerOptions options;
    options.workers = options.parallel_writes = 0;
    options.clock = &clock;
    options.settings.address = render::ClusterDns("");
    options.settings.policy.network_policies = setting;
    const auto manager = *Manager::Start(client, options);
    const auto rest = [&] {
      while (store.Deliver() + (manager->Step() ? 1 : 0) > 0) {
      }
    };
    Json open = Job("open", 2), closed = Job("closed", 2);
    open["metadata"]["annotations"] = {{"tfjob.dev/network-policy", "false"}};
    closed["metadata"]["annotations"] = {{"tfjob.dev/network-policy", "true"}};
    ASSERT_TRUE(store.Create(Kind::kTFJob, open).ok());
    ASSERT_TRUE(store.Create(Kind::kTFJob, closed).ok());
    rest();
    const bool is_watched = setting == kAnnotated || setting == kAll;
    EXPECT_EQ(client.watches, is_watched ? 1 : 0);
    EXPECT_TRUE(manager->Synced());  // the operator is ready
    EXPECT_EQ(CountPods(store), setting == kIgnored ? 4u : 2u);
    if (setting == kIgnored) continue;
    for (int i = 0; i < 32; ++i) {
      clock.Advance(1s);
      rest();
    }
    EXPECT_EQ(CountPods(store), 2u);
    const Json job = *store.GetJson({Kind::kTFJob, "ns", "closed"});
    EXPECT_THAT(job["status"]["conditions"].back()["message"].get<std::string>(),
                testing::HasSubstr(is_watched ? "networkpolicies is forbidden"
                                              : "--job-network-policies is none"));
  }
}

// Counts the operator's requests for the version of the native API.
class CountingDiscovery : public client::Discovery {
 public:
  StatusOr<std::string> ApiVersion(Kind kind) override {
    ++asked;
    return std::string(client::NewestApiVersion(kind));
  }
  int asked = 0;
};

TEST(NativeGang, ARefusalOfAnotherJobDoesNotDoubtTheApi) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  FakeClock clock{*ParseTime("2026-11-21T09:30:00Z")};
  store::Store store(DeliveredByHand(clock));
  client::FaultyClient client(store);
  CountingDiscovery discovery;
  ManagerOptions options;
  options.workers = options.parallel_writes = 0;
  options.clock = &clock;
  options.discovery = &discovery;
  options.settings.address = render::ClusterDns("");
  const auto manager = *Manager::Start(client, options);
  const auto rest = [&] {
    while (store.Deliver() + (manager->Step() ? 1 : 0) > 0) {
    }
  };
  Json gang = Job("gang", 2);
  gang["metadata"]["annotations"] = {{"tfjob.dev/gang-scheduler", "native"}};
  ASSERT_TRUE(store.Create(Kind::kTFJob, gang).ok());
  rest();
  ASSERT_EQ(CountPods(store), 2u);
  const int asked = discovery.asked;
  client.Inject({.matches =
                     [](const client::Call& call) {
                       return call.verb == client::Verb::kCreate && call.key.kind == Kind::kPod;
                     },
                 .times = 1000,
                 .error = PermissionDenied("exceeded quota")});
  ASSERT_TRUE(store.Create(Kind::kTFJob, Job("other", 1)).ok());
  rest();
  clock.Advance(1min);  // an answer in doubt would have expired after 30 s
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(store.Delete({Kind::kPod, "ns", "gang-worker-0"}, now).ok());
  store.Deliver();
  EXPECT_TRUE(manager->Step());
  EXPECT_EQ(discovery.asked, asked);
}

}  // namespace
}  // namespace tfjob::control
