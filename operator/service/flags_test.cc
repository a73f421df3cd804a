// Tests tfjob-operator's flags, environment and configuration file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "operator/service/options.h"

namespace tfjob::service {
namespace {

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
  view::Console console{in, out, err};
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
  EXPECT_EQ(result.options().job_network_policies, policy::NetworkPolicies::kNone);
  EXPECT_EQ(result.options().max_replicas_per_job, 5000);
  EXPECT_EQ(result.options().leader_election_id, "1ca428e5.training-operator.kubeflow.org");
}

TEST(OperatorFlags, AreReadInBothOfGosForms) {
  const auto result = ParseFlags({"--namespace=a",
                                  "-namespace",
                                  "b",
                                  "--leader-elect=true",
                                  "--enable-scheme",
                                  "TFJob",
                                  "-controller-threads=7",
                                  "--kube-api-qps",
                                  "12.5",
                                  "--kube-api-burst=9",
                                  "--metrics-bind-address=0",
                                  "--health-probe-bind-address=127.0.0.1:1",
                                  "--cluster-domain=cluster.local",
                                  "--default-clean-pod-policy=Running",
                                  "--gang-scheduler-name=volcano",
                                  "--enforce-gang-scheduler",
                                  "--job-network-policies=annotated",
                                  "--log-format=json",
                                  "--log-level=debug",
                                  "--leader-election-lease-duration=1m30s",
                                  "--job-keys-dir=/keys",
                                  "--max-replicas-per-job=7000",
                                  "--webhook-server-port=9443"});
  ASSERT_TRUE(std::holds_alternative<OperatorOptions>(result.parsed)) << result.err;
  const OperatorOptions& options = result.options();
  EXPECT_EQ(options.name_spaces, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.leader_elect);
  EXPECT_EQ(options.controller_threads, 7);
  EXPECT_EQ(options.job_keys_dir, "/keys");
  EXPECT_EQ(options.kube_api_qps, 12.5);
  EXPECT_EQ(options.kube_api_burst, 9);
  EXPECT_EQ(options.metrics_address, std::nullopt);
  EXPECT_EQ(options.health_address, (serve::BindAddress{"127.0.0.1", 1}));
  EXPECT_EQ(options.cluster_domain, "cluster.local");
  EXPECT_EQ(options.default_clean_pod_policy, api::CleanPodPolicy::kRunning);
  EXPECT_EQ(options.gang_scheduler_name, "volcano");
  EXPECT_TRUE(options.enforce_gang_scheduler);
  EXPECT_EQ(options.job_network_policies, policy::NetworkPolicies::kAnnotated);
  EXPECT_EQ(options.max_replicas_per_job, 7000);
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.log_level, LogLevel::kDebug);
  EXPECT_EQ(options.lease_duration, 90s);
  EXPECT_EQ(options.warnings, std::vector<std::string>{"--webhook-server-port has no effect here"});
}

TEST(OperatorFlags, OfOneGivenTwiceTheLastHolds) {
  const auto result = ParseFlags(
      {"--kube-api-burst=500", "--log-level=info", "--leader-elect", "--metrics-bind-address=:8080",
       "--namespace=a", "--zap-log-level=1", "--kube-api-burst=9", "--log-level=debug",
       "--leader-elect=false", "--metrics-bind-address=0", "--namespace=b", "--zap-log-level=2"});
  ASSERT_TRUE(std::holds_alternative<OperatorOptions>(result.parsed)) << result.err;
  EXPECT_EQ(result.options().kube_api_burst, 9);
  EXPECT_EQ(result.options().log_level, LogLevel::kDebug);
  EXPECT_FALSE(result.options().leader_elect);
  EXPECT_EQ(result.options().max_replicas_per_job, 5000);
  EXPECT_EQ(result.options().metrics_address, std::nullopt);
  EXPECT_EQ(result.options().name_spaces, (std::vector<std::string>{"a", "b"}));
}

TEST(OperatorFlags, LeaseTimesDoNotMatterWithoutAnElection) {
  const auto result = ParseFlags({"--leader-election-lease-duration=5s"});
  EXPECT_TRUE(std::holds_alternative<OperatorOptions>(result.parsed)) << result.err;
}

TEST(OperatorFlags, RefuseWhatIsWrongAndSayWhy) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"--enforce-gang-scheduler", "--enforce-gang-scheduler needs --gang-scheduler-name"},
      {"--job-network-policies=true",
       "--job-network-policies: expected none, annotated or all, got true"},
      {"--max-replicas-per-job=0", "--max-replicas-per-job"},
      {"--max-replicas-per-job=100001", "--max-replicas-per-job"},
      {"--namespac=a", "did you mean --namespace?"},
      {"--enable-scheme=pytorchjob", "TFJobs only"},
      {"--metrics-bind-address=8080", "--metrics-bind-address"},
      {"--log-level=loud", "loud"},
      {"--log-format=xml", "xml"},
      {"--controller-threads=0", "controller-threads"},
      {"--kube-api-qps=many", "--kube-api-qps: expected a number of 0 or more, got many\n"},
      {"--kube-api-qps=-1", "--kube-api-qps: expected a number of 0 or more, got -1\n"},
      {"--kube-api-qps=nan", "got nan\n"},
      {"--kube-api-burst=0", "--kube-api-burst: expected a number of 1 or more, got 0\n"},
      {"--default-clean-pod-policy=Some", "None, Running or All"},
      {"--leader-election-retry-period=soon", "--leader-election-retry-period"},
      {"--leader-election-lease-duration=5s", "must be longer than the renew deadline (10s)"},
      {"--leader-election-retry-period=9s", "must be longer than the retry period (9s) times"},
      {"--leader-election-retry-period=0s", "the retry period must be positive"},
      {"--config=/does/not/exist", "/does/not/exist"}};
  for (const auto& [flag, message] : wrong) {
    const auto result = ParseFlags({"--leader-elect", flag});
    ASSERT_TRUE(std::holds_alternative<OperatorQuit>(result.parsed)) << flag;
    EXPECT_EQ(result.code(), view::kBadInput) << flag;
    EXPECT_NE(result.err.find(message), std::string::npos) << flag << ": " << result.err;
  }
}

TEST(OperatorFlags, PrintHelpAndVersion) {
  const auto version = ParseFlags({"--version"});
  EXPECT_EQ(version.code(), view::kSucceeded);
  EXPECT_TRUE(version.out.starts_with("tfjob-operator ")) << version.out;
  const auto help = ParseFlags({"--help"});
  EXPECT_EQ(help.code(), view::kSucceeded);
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
  EXPECT_EQ(result.code(), view::kBadInput);
  EXPECT_NE(result.err.find("kube-api-qsp: unknown key; did you mean \"kube-api-qps\"?"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("controller-threads"), std::string::npos) << result.err;
}

TEST(OperatorConfig, RefusesAListWhereOneValueBelongs) {
  const std::string path = WriteConfig("kube-api-burst: [5, 6]\n");
  const auto result = ParseFlags({"--config", path.c_str()});
  ASSERT_TRUE(std::holds_alternative<OperatorQuit>(result.parsed));
  EXPECT_EQ(result.code(), view::kBadInput);
  EXPECT_NE(result.err.find("kube-api-burst: expected one value"), std::string::npos) << result.err;
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

}  // namespace
}  // namespace tfjob::service
