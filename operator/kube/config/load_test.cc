#include "operator/kube/config/load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "operator/kube/doubles/test_certificates.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/file.h"

namespace tfjob::kube {
namespace {

std::string KubeconfigTo(const std::string& server) {
  return StrCat("{current-context: c, clusters: [{name: c, cluster: {server: \"", server,
                "\"}}], contexts: [{name: c, context: {cluster: c}}, {name: d, context: {cluster: "
                "c}}]}");
}

// Simulates a machine, with files in a temporary folder and the environment in a map.
class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "load_test.XXXXXX";
    folder_ = mkdtemp(pattern.data());
    environment_["HOME"] = folder_ + "/home";
    options_.in_cluster.folder = folder_ + "/serviceaccount";
    options_.in_cluster.clock = &clock_;
    options_.in_cluster.environment = [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    };
  }
  ~LoadTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = StrCat(folder_, "/", name);
    EXPECT_TRUE(MakeDirectories(std::filesystem::path(path).parent_path()).ok());
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return path;
  }
  void MakePod() {
    environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
    environment_["KUBERNETES_SERVICE_PORT"] = "443";
    Write("serviceaccount/token", "pod-token\n");
    Write("serviceaccount/ca.crt", authority_.certificate());
    Write("serviceaccount/namespace", "team\n");
  }
  void MakeHome() { Write("home/.kube/config", KubeconfigTo("https://home")); }
  // Returns the server, or the error message.
  std::string Load() {
    const StatusOr<ClusterConfig> config = LoadClusterConfig(options_);
    return config.ok() ? config->server : std::string(Message(config.status()));
  }

  TestAuthority authority_;
  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  std::string folder_;
  std::map<std::string, std::string> environment_;
  LoadOptions options_;
};

TEST_F(LoadTest, APodUsesItsServiceAccount) {
  MakePod();
  const StatusOr<ClusterConfig> config = LoadClusterConfig(options_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->source, "in-cluster");
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_EQ(*config->certificate_authority.Read(), authority_.certificate());
  EXPECT_EQ(config->credentials->Get()->authorization, "Bearer pod-token");
  Write("serviceaccount/token", "next-token");
  clock_.Advance(1min);
  EXPECT_EQ(config->credentials->Get()->authorization, "Bearer next-token");
}

TEST_F(LoadTest, InAClusterOfIpv6TheServerIsFoundByItsName) {
  MakePod();
  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(Load(), "https://kubernetes.default.svc:443");
}

TEST_F(LoadTest, APodHonoursTheProxyOfItsEnvironment) {
  MakePod();
  environment_["HTTPS_PROXY"] = "http://corp:3128";
  EXPECT_EQ(LoadClusterConfig(options_)->proxy_url, "http://corp:3128");
  environment_["NO_PROXY"] = "10.0.0.0/8";
  EXPECT_EQ(LoadClusterConfig(options_)->proxy_url, "");
}

TEST_F(LoadTest, ABrokenServiceAccountIsAnErrorWithThePath) {
  MakePod();
  Write("serviceaccount/ca.crt", "no certificate");
  EXPECT_NE(Load().find("/serviceaccount/ca.crt: expected a PEM certificate"), std::string::npos)
      << Load();
  MakePod();
  Write("serviceaccount/token", "");
  EXPECT_NE(Load().find("/serviceaccount/token: expected a token"), std::string::npos) << Load();
  MakePod();
  environment_["KUBERNETES_SERVICE_PORT"] = "tcp://10.0.0.1:443";
  EXPECT_NE(Load().find("KUBERNETES_SERVICE_PORT"), std::string::npos) << Load();
  MakePod();
  std::filesystem::remove(folder_ + "/serviceaccount/namespace");
  EXPECT_EQ(LoadClusterConfig(options_)->default_namespace, "default");
}

TEST_F(LoadTest, ControllersTryFlagVariablePodHome) {
  EXPECT_NE(Load().find("no cluster is configured"), std::string::npos) << Load();
  MakeHome();
  EXPECT_EQ(Load(), "https://home");
  MakePod();
  EXPECT_EQ(Load(), "https://10.0.0.1:443");
  environment_["KUBECONFIG"] = Write("variable", KubeconfigTo("https://variable"));
  EXPECT_EQ(Load(), "https://variable");
  options_.kubeconfig = Write("flag", KubeconfigTo("https://flag"));
  EXPECT_EQ(Load(), "https://flag");
}

TEST_F(LoadTest, CommandLinesTryFlagVariableHomePod) {
  options_.order = LoadOrder::kCommandLine;
  MakePod();
  EXPECT_EQ(Load(), "https://10.0.0.1:443");
  MakeHome();
  EXPECT_EQ(Load(), "https://home");
  environment_["KUBECONFIG"] = Write("variable", KubeconfigTo("https://variable"));
  EXPECT_EQ(Load(), "https://variable");
}

TEST_F(LoadTest, FilesOfTheVariableAreMergedAndMayBeAbsent) {
  const std::string one = Write("one", "{current-context: c}");
  const std::string two = Write("two", KubeconfigTo("https://two"));
  environment_["KUBECONFIG"] = StrCat("/no/such/file:", one, "::", two);
  EXPECT_EQ(Load(), "https://two");
}

TEST_F(LoadTest, WithOnlyAbsentFilesAControllerLooksNoFurtherAndACommandLineInThePod) {
  MakePod();
  MakeHome();
  environment_["KUBECONFIG"] = "/no/such/file";
  EXPECT_NE(Load().find("/no/such/file does not exist"), std::string::npos) << Load();
  options_.order = LoadOrder::kCommandLine;
  EXPECT_EQ(Load(), "https://10.0.0.1:443");
}

TEST_F(LoadTest, AnAbsentOrBrokenNamedFileIsAnError) {
  MakePod();
  options_.kubeconfig = "/no/such/file";
  EXPECT_NE(Load().find("open /no/such/file"), std::string::npos) << Load();
  options_.kubeconfig = Write("broken", "{clusters: 1}");
  EXPECT_NE(Load().find("/broken: clusters: expected a list"), std::string::npos) << Load();
  options_.kubeconfig = "";
  environment_["KUBECONFIG"] = folder_;
  EXPECT_NE(Load().find(folder_), std::string::npos) << Load();
}

TEST_F(LoadTest, AChosenContextRulesThePodOut) {
  MakePod();
  options_.context = "d";
  EXPECT_NE(Load().find("no cluster is configured"), std::string::npos) << Load();
  MakeHome();
  EXPECT_EQ(Load(), "https://home");
}

TEST_F(LoadTest, WithoutAnythingThePlacesAreNamed) {
  const std::string error = Load();
  for (const char* part : {"KUBERNETES_SERVICE_HOST is not set",
                           "/home/.kube/config does not exist", "--kubeconfig or KUBECONFIG"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_NE(Load().find("/serviceaccount/token does not exist"), std::string::npos) << Load();
}

// Relative paths of certificates, which some tools write, must be relative to the kubeconfig's
// folder.
TEST_F(LoadTest, CertificatesBesideTheKubeconfigAreRead) {
  const CertificatePair pair = authority_.IssueClient("me");
  Write("k/ca.crt", authority_.certificate());
  Write("k/me.crt", pair.certificate);
  Write("k/me.key", pair.key);
  options_.kubeconfig = Write(
      "k/config",
      "{current-context: c, clusters: [{name: c, cluster: {server: \"https://s\", "
      "certificate-authority: ca.crt}}], users: [{name: u, user: {client-certificate: me.crt, "
      "client-key: me.key}}], contexts: [{name: c, context: {cluster: c, user: u}}]}");
  const StatusOr<ClusterConfig> config = LoadClusterConfig(options_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config->credentials->Get()->certificate, pair);
  EXPECT_EQ(*config->certificate_authority.Read(), authority_.certificate());
}

}  // namespace
}  // namespace tfjob::kube
