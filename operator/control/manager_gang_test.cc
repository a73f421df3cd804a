// Tests how the manager handles jobs with a gang or a NetworkPolicy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/control/test_manager.h"

namespace tfjob::control {
namespace {

using fixtures::CountPods;
using fixtures::Job;
using objects::Kind;

// Reconciles 50 times. Meanwhile, the watches report all changes, and time passes.
template <typename Client>
void Proceed(SteppedManager<Client>& stepped) {
  for (int i = 0; i < 50; ++i) {
    stepped.manager->Step();
    stepped.store.Deliver();
    if (i % 10 == 0) stepped.clock.Advance(100ms);
  }
}

// A job is deleted while the watch of jobs is behind. The operator must not recreate the job's pod
// group, although the watch of pod groups reports at once that the garbage collector deleted the
// group.
TEST(PodGroups, OfADeletedJobIsNotMadeAgainAndAgainWhileTheWatchOfJobsIsBehind) {
  SteppedManager<> stepped(/*keep_changes=*/true);
  stepped.Start();
  Json job = Job("a", 1);
  job["metadata"]["annotations"] = {{"tfjob.dev/gang-scheduler", "scheduler-plugins"}};
  stepped.Create(job);
  stepped.store.Deliver();
  stepped.store.CutWatches();
  Proceed(stepped);           // the first reconcile subscribes to pod groups
  stepped.clock.Advance(1s);  // a timer wakes the job again after its deletion
  ASSERT_EQ(stepped.store.List(Kind::kCoschedulingPodGroup, "ns", {})->size(), 1u);
  ASSERT_TRUE(stepped.store.Delete({Kind::kTFJob, "ns", "a"}, {}).ok());
  Proceed(stepped);
  EXPECT_EQ(stepped.Count(client::Verb::kCreate, Kind::kCoschedulingPodGroup), 1);
}

// Suppresses the reports that jobs were deleted, to simulate a watch of jobs that is behind.
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
  SteppedManager<BehindWithDeletedJobs> stepped;
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  stepped.options.settings.policy.network_policies = policy::NetworkPolicies::kAll;
  stepped.Start();
  stepped.Create(Job("a", 1));
  Proceed(stepped);
  ASSERT_EQ(stepped.store.List(Kind::kNetworkPolicy, "ns", {})->size(), 1u);
  ASSERT_TRUE(stepped.store.Delete({Kind::kTFJob, "ns", "a"}, {}).ok());
  Proceed(stepped);
  EXPECT_EQ(stepped.Count(client::Verb::kCreate, Kind::kNetworkPolicy), 1);
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
  SteppedManager<PruningClient> stepped;
  stepped.options.discovery = &stepped.store;
  stepped.options.settings.policy.gang = policy::GangFromFlag("native");
  stepped.Start();
  stepped.Create(Job("a", 2));
  stepped.Rest();
  EXPECT_EQ(CountPods(stepped.store), 2u);
  int told = 0;
  const std::vector<client::Object> events = *stepped.store.List(Kind::kEvent, "ns", {});
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
  SteppedManager<WithoutVolcano> stepped;
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  stepped.options.settings.policy.gang = policy::GangFromFlag("volcano");
  stepped.Start();
  Json alone = Job("alone", 2);
  alone["metadata"]["annotations"] = {{"tfjob.dev/gang-scheduler", "none"}};
  stepped.Create(alone);
  stepped.Create(Job("gang", 2));
  stepped.Rest();
  EXPECT_EQ(CountPods(stepped.store), 2u);
  EXPECT_FALSE(stepped.manager->Synced());
  EXPECT_EQ(stepped.manager->Waiting(), std::vector<std::string>{"PodGroup"});
  // The job with a gang must eventually report why it has no pods.
  for (int i = 0; i < 32; ++i) {
    stepped.clock.Advance(1s);
    stepped.Rest();
  }
  EXPECT_EQ(CountPods(stepped.store), 2u);
  const Json job = *stepped.store.GetJson({Kind::kTFJob, "ns", "gang"});
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
  using enum policy::NetworkPolicies;
  for (const policy::NetworkPolicies setting : {kNone, kIgnored, kAnnotated, kAll}) {
    SteppedManager<WithoutNetworkPolicies> stepped;
    ConfigureLogging(LogLevel::kOff, LogFormat::kText);
    stepped.options.settings.policy.network_policies = setting;
    stepped.Start();
    Json open = Job("open", 2), closed = Job("closed", 2);
    open["metadata"]["annotations"] = {{"tfjob.dev/network-policy", "false"}};
    closed["metadata"]["annotations"] = {{"tfjob.dev/network-policy", "true"}};
    stepped.Create(open);
    stepped.Create(closed);
    stepped.Rest();
    const bool is_watched = setting == kAnnotated || setting == kAll;
    EXPECT_EQ(stepped.client.watches, is_watched ? 1 : 0);
    EXPECT_TRUE(stepped.manager->Synced());  // the operator is ready
    EXPECT_EQ(CountPods(stepped.store), setting == kIgnored ? 4u : 2u);
    if (setting == kIgnored) continue;
    for (int i = 0; i < 32; ++i) {
      stepped.clock.Advance(1s);
      stepped.Rest();
    }
    EXPECT_EQ(CountPods(stepped.store), 2u);
    const Json job = *stepped.store.GetJson({Kind::kTFJob, "ns", "closed"});
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
  SteppedManager<> stepped;
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  CountingDiscovery discovery;
  stepped.options.discovery = &discovery;
  stepped.Start();
  Json gang = Job("gang", 2);
  gang["metadata"]["annotations"] = {{"tfjob.dev/gang-scheduler", "native"}};
  stepped.Create(gang);
  stepped.Rest();
  ASSERT_EQ(CountPods(stepped.store), 2u);
  const int asked = discovery.asked;
  stepped.client.Inject({.matches =
                             [](const client::Call& call) {
                               return call.verb == client::Verb::kCreate &&
                                      call.key.kind == Kind::kPod;
                             },
                         .times = 1000,
                         .error = PermissionDenied("exceeded quota")});
  stepped.Create(Job("other", 1));
  stepped.Rest();
  stepped.clock.Advance(1min);  // an answer in doubt would have expired after 30 s
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(stepped.store.Delete({Kind::kPod, "ns", "gang-worker-0"}, now).ok());
  stepped.store.Deliver();
  EXPECT_TRUE(stepped.manager->Step());
  EXPECT_EQ(discovery.asked, asked);
}

}  // namespace
}  // namespace tfjob::control
