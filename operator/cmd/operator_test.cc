// tfjob-operator over the in-memory store: its flags, its probes, its lease, its end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "operator/client/faults.h"
#include "operator/cmd/operator_run.h"
#include "operator/local/store/store.h"
#include "operator/serve/http_get.h"
#include "operator/serve/server.h"
#include "runtime/base/log.h"

namespace tfjob::cmd {
namespace {

using client::Kind;
using Parsed = std::variant<OperatorOptions, OperatorQuit>;

struct FlagsResult {
  Parsed parsed;
  std::string out;
  std::string err;

  const OperatorOptions& options() const { return std::get<OperatorOptions>(parsed); }
  int code() const { return std::get<OperatorQuit>(parsed).code; }
};

FlagsResult ParseFlags(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tfjob-operator");
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  Console console{in, out, err};
  Parsed parsed = ParseOperatorFlags(static_cast<int>(arguments.size()), arguments.data(), console);
  return {std::move(parsed), out.str(), err.str()};
}

std::string WriteConfig(const std::string& text) {
  const std::string path = StrCat(::testing::TempDir(), "/config-",
                                  ::testing::UnitTest::GetInstance()->random_seed(), ".yaml");
  std::ofstream(path) << text;
  return path;
}

TEST(OperatorFlags, HaveTheReferencesNamesAndDefaults) {
  const auto result = ParseFlags({});
  ASSERT_TRUE(std::holds_alternative<OperatorOptions>(result.parsed)) << result.err;
  EXPECT_EQ(result.options().metrics_address, (serve::BindAddress{"", 8080}));
  EXPECT_EQ(result.options().health_address, (serve::BindAddress{"", 8081}));
  EXPECT_TRUE(result.options().name_spaces.empty());
  EXPECT_FALSE(result.options().leader_elect);
  EXPECT_EQ(result.options().leader_election_id, "1ca428e5.training-operator.kubeflow.org");
}

TEST(OperatorFlags, AreReadInBothOfGosForms) {
  const auto result =
      ParseFlags({"--namespace=a", "-namespace", "b", "--leader-elect=true", "--enable-scheme",
                  "TFJob", "-controller-threads=7", "--kube-api-qps", "12.5", "--kube-api-burst=9",
                  "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:1",
                  "--cluster-domain=cluster.local", "--default-clean-pod-policy=Running",
                  "--gang-scheduler-name=volcano", "--log-format=json", "--log-level=debug",
                  "--leader-election-lease-duration=1m30s", "--webhook-server-port=9443"});
  ASSERT_TRUE(std::holds_alternative<OperatorOptions>(result.parsed)) << result.err;
  const OperatorOptions& options = result.options();
  EXPECT_EQ(options.name_spaces, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.leader_elect);
  EXPECT_EQ(options.controller_threads, 7);
  EXPECT_EQ(options.kube_api_qps, 12.5);
  EXPECT_EQ(options.kube_api_burst, 9);
  EXPECT_EQ(options.metrics_address, std::nullopt);
  EXPECT_EQ(options.health_address, (serve::BindAddress{"127.0.0.1", 1}));
  EXPECT_EQ(options.cluster_domain, "cluster.local");
  EXPECT_EQ(options.default_clean_pod_policy, api::CleanPodPolicy::kRunning);
  EXPECT_EQ(options.gang_scheduler_name, "volcano");
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.log_level, LogLevel::kDebug);
  EXPECT_EQ(options.lease_duration, 90s);
  EXPECT_EQ(options.warnings, std::vector<std::string>{"--webhook-server-port has no effect here"});
}

TEST(OperatorFlags, RefuseWhatIsWrongAndSayWhy) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"--namespac=a", "did you mean --namespace?"},
      {"--enable-scheme=pytorchjob", "TFJobs only"},
      {"--metrics-bind-address=8080", "--metrics-bind-address"},
      {"--log-level=loud", "loud"},
      {"--log-format=xml", "xml"},
      {"--controller-threads=0", "controller-threads"},
      {"--kube-api-qps=many", "kube-api-qps"},
      {"--default-clean-pod-policy=Some", "None, Running or All"},
      {"--leader-election-retry-period=soon", "--leader-election-retry-period"},
      {"--config=/does/not/exist", "/does/not/exist"}};
  for (const auto& [flag, message] : wrong) {
    const auto result = ParseFlags({flag});
    ASSERT_TRUE(std::holds_alternative<OperatorQuit>(result.parsed)) << flag;
    EXPECT_EQ(result.code(), kBadInput) << flag;
    EXPECT_NE(result.err.find(message), std::string::npos) << flag << ": " << result.err;
  }
}

TEST(OperatorFlags, PrintHelpAndVersion) {
  const auto version = ParseFlags({"--version"});
  EXPECT_EQ(version.code(), kSucceeded);
  EXPECT_TRUE(version.out.starts_with("tfjob-operator ")) << version.out;
  const auto help = ParseFlags({"--help"});
  EXPECT_EQ(help.code(), kSucceeded);
  EXPECT_NE(help.out.find("--kube-api-qps"), std::string::npos) << help.out;
}

TEST(OperatorConfig, HasTheFlagsKeysAndFlagsWin) {
  const std::string path = WriteConfig(
      "namespace: [a, b]\n"
      "leader-elect: true\n"
      "kube-api-qps: 50\n"
      "controller-threads: 3\n"
      "metrics-bind-address: \":9090\"\n");
  const auto result = ParseFlags({"--config", path.c_str(), "--controller-threads=8"});
  ASSERT_TRUE(std::holds_alternative<OperatorOptions>(result.parsed)) << result.err;
  EXPECT_EQ(result.options().name_spaces, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(result.options().leader_elect);
  EXPECT_EQ(result.options().kube_api_qps, 50);
  EXPECT_EQ(result.options().controller_threads, 8);
  EXPECT_EQ(result.options().metrics_address, (serve::BindAddress{"", 9090}));
}

TEST(OperatorConfig, RefusesUnknownKeysAndWrongValuesWithTheirNames) {
  const std::string path = WriteConfig("kube-api-qsp: 50\ncontroller-threads: none\n");
  const auto result = ParseFlags({"--config", path.c_str()});
  ASSERT_TRUE(std::holds_alternative<OperatorQuit>(result.parsed));
  EXPECT_EQ(result.code(), kBadInput);
  EXPECT_NE(result.err.find("kube-api-qsp: unknown key; did you mean \"kube-api-qps\"?"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("controller-threads"), std::string::npos) << result.err;
}

TEST(OperatorConfig, TheEnvironmentRanksBetweenFlagsAndFile) {
  setenv("CUSTOM_CLUSTER_DOMAIN", "from.environment", 1);
  setenv("KUBEFLOW_NAMESPACE", "env", 1);
  const std::string path = WriteConfig("cluster-domain: from.file\n");
  const auto result = ParseFlags({"--config", path.c_str(), "--namespace=flag"});
  unsetenv("CUSTOM_CLUSTER_DOMAIN");
  unsetenv("KUBEFLOW_NAMESPACE");
  ASSERT_TRUE(std::holds_alternative<OperatorOptions>(result.parsed)) << result.err;
  EXPECT_EQ(result.options().cluster_domain, "from.environment");
  EXPECT_EQ(result.options().name_spaces, std::vector<std::string>{"flag"});
}

// A server in this process.
class FakeCluster {
 public:
  explicit FakeCluster(bool deliver_by_hand = false)
      : store({.deliver_by_hand = deliver_by_hand}),
        client(store),
        event_client(store),
        lease_client(store) {}

  // From now on calls hang until they are cancelled.
  void Hang() {
    client.Inject(Hanging(cancelled));
    event_client.Inject(Hanging(cancelled));
    lease_client.Inject(Hanging(lease_cancelled));
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
  std::function<bool()> may_write;  // of the operator that connected last, as long as it lives
  StopSource cancelled;
  StopSource lease_cancelled;
  std::atomic<int> hanging = 0;  // calls, so far

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
    void CancelCalls() override { cluster_.cancelled.Request(1); }
    void CancelLeaseCalls() override { cluster_.lease_cancelled.Request(1); }

   private:
    FakeCluster& cluster_;
  };
};

// An operator on a thread of its own.
class Running {
 public:
  explicit Running(FakeCluster& cluster, OperatorOptions options = {})
      : options_(std::move(options)), thread_([this, &cluster] {
          OperatorHooks hooks;
          hooks.listening = [this](const std::string&, uint16_t port) { port_ = port; };
          hooks.clock = &clock_;
          code_ = RunOperator(options_, cluster.Connect(), stop_, hooks);
        }) {}
  ~Running() { Stop(); }

  int Stop() {
    stop_.Request(15);
    return Join();
  }
  int Join() {
    if (thread_.joinable()) thread_.join();
    return code_;
  }
  // What the last server that listens answers.
  std::string Get(const std::string& path) { return port_ == 0 ? "" : serve::HttpGet(port_, path); }
  FakeClock& clock() { return clock_; }

 private:
  const OperatorOptions options_;
  StopSource stop_;
  FakeClock clock_{Time(1h)};
  std::atomic<uint16_t> port_ = 0;
  int code_ = -1;
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

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
  }
  return condition();
}

size_t Pods(FakeCluster& cluster) {
  return cluster.store.List(Kind::kPod, "ns", {})->size();
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
  EXPECT_EQ(running.Stop(), kSucceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
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
  // A renewal, and the first calls for the job.
  EXPECT_TRUE(Eventually([&] { return cluster_.hanging >= 2; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(running.Stop(), kSucceeded);
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
  EXPECT_EQ(first.Stop(), kSucceeded);
  const auto lease = cluster_.store.GetJson({Kind::kLease, "operator", options.leader_election_id});
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(JsonField(*lease)["spec"]["holderIdentity"].StringOr("").value_or("?"), "");
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
  EXPECT_EQ(running.Stop(), kSucceeded);
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
    EXPECT_TRUE(Eventually([&] { return said == kSucceeded; }));
    return Unavailable("no such host");
  };
  EXPECT_EQ(RunOperator(Silent(), slow, stop, hooks), kSucceeded);
}

TEST_F(OperatorTest, OfTwoTheSecondTakesOverWhenTheFirstLeaves) {
  Running first(cluster_, Electing());
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("a")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 2; }));
  Running second(cluster_, Electing());
  EXPECT_EQ(first.Stop(), kSucceeded);
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("b")).ok());
  EXPECT_TRUE(Eventually([&] { return Pods(cluster_) == 4; }));
  EXPECT_EQ(second.Stop(), kSucceeded);
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
  EXPECT_EQ(running.Join(), kFailed);
  ASSERT_TRUE(cluster_.store.Create(Kind::kTFJob, Job("b")).ok());
  EXPECT_EQ(Pods(cluster_), 2u);
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
  EXPECT_EQ(running.Join(), kFailed);
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
  EXPECT_EQ(running.Stop(), kSucceeded);
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
  EXPECT_NE(running.Get("/metrics").find("state=\"Created\""), std::string::npos);
}

TEST_F(OperatorTest, RefusesAConfigurationThatIsNone) {
  StopSource stop;
  const ConnectOperator nowhere =
      [](const OperatorOptions&, kube::RestObserver&,
         const std::function<bool()>&) -> StatusOr<std::unique_ptr<OperatorCluster>> {
    return NotFound("no kubeconfig");
  };
  EXPECT_EQ(RunOperator(Silent(), nowhere, stop, {}), kBadInput);
}

TEST_F(OperatorTest, FailsWhenItsAddressIsTaken) {
  serve::Options taken;
  taken.address = {"127.0.0.1", 0};
  const auto server = serve::Server::Create(std::move(taken));
  ASSERT_TRUE(server.ok());
  OperatorOptions options = Silent();
  options.metrics_address = serve::BindAddress{"127.0.0.1", (*server)->port()};
  StopSource stop;
  EXPECT_EQ(RunOperator(options, cluster_.Connect(), stop, {}), kFailed);
}

}  // namespace
}  // namespace tfjob::cmd
