// Tests tfjob-operator with the in-memory store: probes, lease, and shutdown.
#include "operator/objects/service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "operator/client/faults.h"
#include "operator/keys/key_ring.h"
#include "operator/local/store/store.h"
#include "operator/serve/http_get.h"
#include "operator/serve/server.h"
#include "operator/service/run.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace tfjob::service {
namespace {

using objects::Kind;

// Simulates a cluster in this process with the in-memory store.
class FakeCluster {
 public:
  explicit FakeCluster(bool deliver_by_hand = false)
      : store({.deliver_by_hand = deliver_by_hand}),
        client(store),
        event_client(store),
        lease_client(store) {}

  // Makes all later calls except watches hang until they are cancelled.
  void Hang() {
    client.Inject(Hanging(cancelled));
    event_client.Inject(Hanging(cancelled));
    lease_client.Inject(Hanging(lease_cancelled));
  }

  void SetTroubles(std::vector<kube::WatchTrouble> troubles) {
    MutexLock lock(mutex_);
    troubles_ = std::move(troubles);
  }
  std::vector<kube::WatchTrouble> Troubles() {
    ++looks;
    MutexLock lock(mutex_);
    return troubles_;
  }

  ConnectOperator Connect() {
    return
        [this](const OperatorOptions&, kube::RestObserver&,
               const std::function<bool()>& asked) -> StatusOr<std::unique_ptr<OperatorCluster>> {
          may_write = asked;
          return std::unique_ptr<OperatorCluster>(std::make_unique<Side>(*this));
        };
  }

  store::Store store;
  client::FaultyClient client;
  client::FaultyClient event_client;
  client::FaultyClient lease_client;
  std::function<bool()> may_write;  // of the last operator to connect, while that operator exists
  StopSource cancelled;
  StopSource lease_cancelled;
  std::atomic<int> hanging = 0;  // number of calls that have hung so far
  std::atomic<int> looks = 0;    // number of calls of Troubles() so far

  struct : client::Discovery {
    StatusOr<std::string> ApiVersion(Kind kind) override {
      return ask ? ask() : std::string(client::NewestApiVersion(kind));
    }
    std::function<StatusOr<std::string>()> ask;
  } discovery;

 private:
  client::Fault Hanging(const StopSource& end) {
    client::Fault fault;
    fault.matches = [](const client::Call& call) { return call.verb != client::Verb::kWatch; };
    fault.times = 1 << 30;
    fault.error = Cancelled("the client was stopped");
    fault.before_call = [this, &end] {
      ++hanging;
      end.WaitFor(20s);
    };
    return fault;
  }

  class Side : public OperatorCluster {
   public:
    explicit Side(FakeCluster& cluster) : cluster_(cluster) {}
    std::string name() const override { return "fake"; }
    std::string own_namespace() const override { return "operator"; }
    client::Client& client() override { return cluster_.client; }
    client::Client& event_client() override { return cluster_.event_client; }
    client::Client& lease_client() override { return cluster_.lease_client; }
    client::Discovery& discovery() override { return cluster_.discovery; }
    std::vector<kube::WatchTrouble> Troubles() override { return cluster_.Troubles(); }
    void CancelCalls() override { cluster_.cancelled.Request(1); }
    void CancelLeaseCalls() override { cluster_.lease_cancelled.Request(1); }

   private:
    FakeCluster& cluster_;
  };

  Mutex mutex_;
  std::vector<kube::WatchTrouble> troubles_ ABSL_GUARDED_BY(mutex_);
};

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
  }
  return condition();
}

// Runs an operator on a separate thread.
class Running {
 public:
  explicit Running(FakeCluster& cluster, OperatorOptions options = {})
      : options_(std::move(options)), thread_([this, &cluster] {
          OperatorHooks hooks;
          hooks.listening = [this](const std::string&, uint16_t port) { port_ = port; };
          hooks.clock = &clock_;
          code_ = RunOperator(options_, cluster.Connect(), stop_, hooks);
          ended_ = true;
        }) {}
  ~Running() { Stop(); }

  int Stop() {
    stop_.Request(15);
    return Join();
  }
  // Advances the clock in steps of `by` until the operator exits without a stop request.
  int JoinAdvancing(Duration by) {
    EXPECT_TRUE(Eventually([&] {
      clock_.Advance(by);
      return ended_.load();
    }));
    return Stop();
  }
  int Join() {
    if (thread_.joinable()) thread_.join();
    return code_;
  }
  // Returns the response of the server that started listening last.
  std::string Get(const std::string& path) { return port_ == 0 ? "" : serve::HttpGet(port_, path); }
  FakeClock& clock() { return clock_; }

 private:
  const OperatorOptions options_;
  StopSource stop_;
  FakeClock clock_{Time(1h)};
  std::atomic<uint16_t> port_ = 0;
  int code_ = -1;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

OperatorOptions Silent() {
  OperatorOptions options;
  options.metrics_address.reset();
  options.health_address.reset();
  return options;
}

OperatorOptions Electing() {
  OperatorOptions options = Silent();
  options.leader_elect = true;
  options.lease_duration = 1s;
  options.renew_deadline = 700ms;
  options.retry_period = 100ms;
  return options;
}

Json Job(const std::string& name) {
  const Json container = {{"name", "tensorflow"}, {"image", "trainer"}};
  const Json worker = {{"replicas", 2},
                       {"template", {{"spec", {{"containers", Json::array({container})}}}}}};
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", {{"name", name}, {"namespace", "ns"}}},
          {"spec", {{"tfReplicaSpecs", {{"Worker", worker}}}}}};
}

size_t Pods(FakeCluster& cluster) {
  return cluster.store.List(Kind::kPod, "ns", {})->size();
}

// Returns the holder of the lease.
std::string Holder(FakeCluster& cluster) {
  const auto lease =
      cluster.store.GetJson({Kind::kLease, "operator", OperatorOptions().leader_election_id});
  if (!lease.ok()) return "no lease";
  return JsonField(*lease)["spec"]["holderIdentity"].StringOr("").value_or("?");
}

class OperatorTest : public ::testing::Test {
 protected:
  OperatorTest() { ConfigureLogging(LogLevel::kOff, LogFormat::kText); }

  FakeCluster cluster_;
};

TEST_F(OperatorTest, RunsJobsAndEndsWithCode0WithinTwoSeconds) {
  Running running(cluster_, Silent());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(running.Stop(), view::kSucceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

// The keys are read at the start and again when they change.
TEST_F(OperatorTest, GivesPodsTheKeyOfTheirJob) {
  OperatorOptions options = Silent();
  options.job_keys_dir = ::testing::TempDir() + "/job-keys";
  ASSERT_TRUE(MakeDirectories(options.job_keys_dir).ok());
  const std::string path = options.job_keys_dir + "/1", secret = "0123456789abcdef0123456789abcdef";
  ASSERT_TRUE(WriteFileAtomically(path, secret).ok());
  Running running(cluster_, options);
  keys::KeyRing ring;
  ASSERT_TRUE(ring.Add("1", secret).ok());
  const auto create = [&](const std::string& name) {
    const auto job = cluster_.store.Create(Kind::kTFJob, Job(name));
    ASSERT_TRUE(job.ok()) << job.status();
    const client::Key pod{Kind::kPod, "ns", name + "-worker-1"};
    EXPECT_TRUE(Eventually([&] { return cluster_.store.Get(pod).ok(); }));
    const Json sent = cluster_.store.GetJson(pod).value();
    const std::string id = ring.ids().back();
    EXPECT_EQ(sent["metadata"]["annotations"]["tfjob.dev/key-id"], id);
    EXPECT_EQ(
        sent["spec"]["containers"][0]["env"][0],
        (Json{{"name", "TFJOB_KEY"}, {"value", ring.JobKey(id, client::MetadataOf(*job).uid)}}));
  };
  create("a");
  ASSERT_TRUE(WriteFileAtomically(options.job_keys_dir + "/2", secret + "2").ok());
  ASSERT_TRUE(ring.Add("2", secret + "2").ok());
  running.clock().Advance(10s);
  create("b");
  EXPECT_EQ(running.Stop(), view::kSucceeded);
}

TEST_F(OperatorTest, EndsWithCode0WithinTwoSecondsWhenTheServerHangs) {
  OperatorOptions options = Electing();
  options.renew_deadline = 10s;
  options.lease_duration = 15s;
  Running running(cluster_, options);
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  cluster_.Hang();
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("b")).ok());
  // One of the two hanging calls is a renewal of the lease; the other is the first call for the new
  // job.
  EXPECT_TRUE(Eventually([&] { return cluster_.hanging >= 2; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(running.Stop(), view::kSucceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

TEST_F(OperatorTest, GivesTheLeaseUpWithinItsTimeAlthoughOtherCallsHang) {
  OperatorOptions options = Electing();
  options.renew_deadline = 10s;
  options.lease_duration = 15s;
  Running first(cluster_, options);
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  cluster_.Hang();
  cluster_.lease_client.Clear();
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("b")).ok());
  EXPECT_TRUE(Eventually([&] { return cluster_.hanging >= 1; }));
  EXPECT_EQ(first.Stop(), view::kSucceeded);
  EXPECT_EQ(Holder(cluster_), "");
}

TEST_F(OperatorTest, EndsWithinTwoSecondsWhileItAsksWhyItWaits) {
  FakeCluster silent(true);
  std::atomic<bool> asked = false;
  silent.discovery.ask = [&]() -> StatusOr<std::string> {
    asked = true;
    silent.cancelled.WaitFor(20s);
    return Cancelled("the client was stopped");
  };
  Running running(silent, Silent());
  EXPECT_TRUE(Eventually([&] {
    running.clock().Advance(1s);
    return asked.load();
  }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(running.Stop(), view::kSucceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

TEST_F(OperatorTest, SaysThatItLeavesWhateverItIsAt) {
  StopSource stop;
  std::atomic<int> said = -1;
  OperatorHooks hooks;
  hooks.leaving = [&](int code) { said = code; };
  const ConnectOperator slow =
      [&](const OperatorOptions&, kube::RestObserver&,
          const std::function<bool()>&) -> StatusOr<std::unique_ptr<OperatorCluster>> {
    stop.Request(15);
    EXPECT_TRUE(Eventually([&] { return said == view::kSucceeded; }));
    return Unavailable("no such host");
  };
  EXPECT_EQ(RunOperator(Silent(), slow, stop, hooks), view::kSucceeded);
}

TEST_F(OperatorTest, OfTwoTheSecondTakesOverWhenTheFirstLeaves) {
  Running first(cluster_, Electing());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  Running second(cluster_, Electing());
  EXPECT_EQ(first.Stop(), view::kSucceeded);
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("b")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 4; }));
  EXPECT_EQ(second.Stop(), view::kSucceeded);
}

TEST_F(OperatorTest, StopsWritingAndFailsWhenTheLeaseIsLost) {
  Running running(cluster_, Electing());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  client::Fault away;
  away.matches = [](const client::Call&) { return true; };
  away.times = 1 << 30;
  away.error = Unavailable("the server is away");
  cluster_.lease_client.Inject(away);
  EXPECT_EQ(running.Join(), view::kFailed);
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("b")).ok());
  EXPECT_EQ(Pods(cluster_), 2u);
}

TEST_F(OperatorTest, ALeaderWithoutItsFirstListsLeavesTheLeaseToAnother) {
  FakeCluster silent(true);
  silent.SetTroubles({{Kind::kService, "team-b", 1h, PermissionDenied("services is forbidden")},
                      {Kind::kPod, "", 121s, Unavailable("no answer yet")}});
  testing::internal::CaptureStderr();
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  Running running(silent, Electing());
  EXPECT_EQ(running.JoinAdvancing(10s), view::kFailed);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("for 2m1s"), std::string::npos) << log;
  EXPECT_NE(log.find("TFJob, Pod, Service"), std::string::npos) << log;
  EXPECT_NE(log.find("no answer yet"), std::string::npos) << log;
  EXPECT_EQ(Holder(silent), "");
}

TEST_F(OperatorTest, ALeaderThatCannotListAnyMoreLeavesTheLeaseToAnother) {
  Running running(cluster_, Electing());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  cluster_.SetTroubles({{Kind::kService, "", 119s, Unavailable("away")},
                        {Kind::kPodGroup, "", 1h, Unavailable("what one job wants")}});
  const int looks = cluster_.looks;
  EXPECT_TRUE(Eventually([&] {
    running.clock().Advance(10s);
    return cluster_.looks > looks + 1;
  }));
  EXPECT_NE(Holder(cluster_), "");
  cluster_.SetTroubles({{Kind::kService, "", 120s, Unavailable("away")}});
  EXPECT_EQ(running.JoinAdvancing(10s), view::kFailed);
  EXPECT_EQ(Holder(cluster_), "");
}

TEST_F(OperatorTest, ALeaderStaysWhereAnotherWouldSeeNoMore) {
  for (const Status& why :
       {NotFound("the server serves no tfjobs"), ResourceExhausted("too many requests"),
        PermissionDenied("a namespace is gone, and its role with it")}) {
    FakeCluster silent(true);
    silent.discovery.ask = [&]() -> StatusOr<std::string> {
      if (why.code() == StatusCode::kNotFound) return why;
      return "kubeflow.org/v1";
    };
    silent.SetTroubles({{Kind::kTFJob, "", 1h, why}});
    Running running(silent, Electing());
    EXPECT_TRUE(Eventually([&] {
      running.clock().Advance(10s);
      return silent.looks > 20;
    }));
    EXPECT_NE(Holder(silent), "");
    EXPECT_EQ(running.Stop(), view::kSucceeded);
  }
}

TEST_F(OperatorTest, OneThatElectsNobodyWaits) {
  FakeCluster silent(true);
  std::atomic<int> asked = 0;
  silent.discovery.ask = [&]() -> StatusOr<std::string> {
    ++asked;
    return Unavailable("away");
  };
  Running running(silent, Silent());
  EXPECT_TRUE(Eventually([&] {
    running.clock().Advance(10s);
    return asked > 20;
  }));
  EXPECT_EQ(running.Stop(), view::kSucceeded);
}

TEST_F(OperatorTest, AWriteThatWaitsIsToldThatTheLeaseIsLost) {
  client::Fault away;
  away.matches = [](const client::Call&) { return true; };
  away.times = 1 << 30;
  away.error = Unavailable("the server is away");
  std::atomic<bool> at_first = false;
  std::atomic<bool> in_the_end = true;
  client::Fault slow;
  slow.matches = [](const client::Call& call) { return call.verb == client::Verb::kCreate; };
  slow.before_call = [&] {
    at_first = cluster_.may_write();
    cluster_.lease_client.Inject(away);
    in_the_end = !Eventually([&] { return !cluster_.may_write(); });
  };
  cluster_.client.Inject(slow);
  Running running(cluster_, Electing());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_EQ(running.Join(), view::kFailed);
  EXPECT_TRUE(at_first);
  EXPECT_FALSE(in_the_end);
}

TEST_F(OperatorTest, IsReadyWhenTheFirstListsAreThereAndHealthyAllAlong) {
  FakeCluster silent(true);
  OperatorOptions options = Silent();
  options.health_address = serve::BindAddress{"127.0.0.1", 0};
  Running running(silent, options);
  EXPECT_TRUE(Eventually([&] {
    return running.Get("/readyz").find("waiting for the first list of TFJob, Pod, Service") !=
           std::string::npos;
  })) << running.Get("/readyz");
  EXPECT_TRUE(running.Get("/healthz").starts_with("HTTP/1.0 200 ")) << running.Get("/healthz");
  silent.store.Deliver();
  EXPECT_TRUE(running.Get("/readyz").starts_with("HTTP/1.0 200 ")) << running.Get("/readyz");
  EXPECT_EQ(running.Stop(), view::kSucceeded);
}

TEST_F(OperatorTest, EventsGoTheirOwnWay) {
  Running running(cluster_, Electing());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return !cluster_.store.List(Kind::kEvent, "ns", {})->empty(); }));
  for (const client::Call& call : cluster_.client.Calls()) {
    EXPECT_NE(call.key.kind, Kind::kEvent) << client::ToString(call.key);
  }
  EXPECT_FALSE(cluster_.event_client.Calls().empty());
}

TEST_F(OperatorTest, AStandbyIsReady) {
  Running first(cluster_, Electing());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  OperatorOptions options = Electing();
  options.health_address = serve::BindAddress{"127.0.0.1", 0};
  Running second(cluster_, options);
  EXPECT_TRUE(Eventually([&] { return second.Get("/readyz").starts_with("HTTP/1.0 200 "); }));
}

TEST_F(OperatorTest, ServesMetrics) {
  OperatorOptions options = Silent();
  options.metrics_address = serve::BindAddress{"127.0.0.1", 0};
  Running running(cluster_, options);
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] {
    return running.Get("/metrics").find("\ncreated_pods_total 2\n") != std::string::npos;
  })) << running.Get("/metrics");
  // The gauges may lag behind, because the caches are read only once per second.
  EXPECT_TRUE(Eventually([&] {
    return running.Get("/metrics").find("state=\"Created\"") != std::string::npos;
  })) << running.Get("/metrics");
  EXPECT_TRUE(Eventually([&] {
    const std::string text = running.Get("/metrics");
    const std::string sent = "\ntfjob_events_total{result=\"sent\"} ";
    return text.find(sent) != std::string::npos && text.find(sent + "0\n") == std::string::npos;
  })) << running.Get("/metrics");
}

TEST_F(OperatorTest, RefusesAConfigurationThatIsNone) {
  StopSource stop;
  const ConnectOperator nowhere =
      [](const OperatorOptions&, kube::RestObserver&,
         const std::function<bool()>&) -> StatusOr<std::unique_ptr<OperatorCluster>> {
    return NotFound("no kubeconfig");
  };
  EXPECT_EQ(RunOperator(Silent(), nowhere, stop, {}), view::kBadInput);
}

TEST_F(OperatorTest, FailsWhenItsAddressIsTaken) {
  serve::ServerOptions taken;
  taken.address = {"127.0.0.1", 0};
  const auto server = serve::Server::Create(std::move(taken));
  ASSERT_TRUE(server.ok());
  OperatorOptions options = Silent();
  options.metrics_address = serve::BindAddress{"127.0.0.1", (*server)->port()};
  StopSource stop;
  EXPECT_EQ(RunOperator(options, cluster_.Connect(), stop, {}), view::kFailed);
}

}  // namespace
}  // namespace tfjob::service
