#include "operator/kube/config/kubeconfig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/escaping.h"

namespace tfjob::kube {
namespace {

constexpr char kPath[] = "/home/x/.kube/config";

const char kTwoClusters[] = R"(
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: one
  cluster: {server: "https://one:6443/"}
- name: two
  cluster:
    server: https://two
    tls-server-name: kubernetes
    proxy-url: http://proxy
    disable-compression: true
    unknown-member: {is: fine}
users:
- name: me
  user: {token: my-token}
- name: basic
  user: {username: u, password: p}
contexts:
- name: one
  context: {cluster: one, user: me}
- name: two
  context: {cluster: two, user: basic, namespace: team}
- name: nobody
  context: {cluster: one}
)";

std::optional<std::string> NoVariables(const char*) {
  return std::nullopt;
}

StatusOr<ClusterConfig> Resolve(const std::string& text, const std::string& context = "") {
  ASSIGN_OR_RETURN(const Kubeconfig config, ParseKubeconfig(text, kPath));
  ResolveOptions options;
  options.context = context;
  options.environment = NoVariables;
  return ResolveKubeconfig(config, options);
}

// Returns a kubeconfig with one cluster and one user that have these members.
std::string Config(const std::string& cluster, const std::string& user) {
  return StrCat("{\"current-context\": c, clusters: [{name: c, cluster: {", cluster,
                "}}], users: [{name: u, user: {", user,
                "}}], contexts: [{name: c, context: {cluster: c, user: u}}]}");
}

const char kServer[] = "server: \"https://s\"";

void ExpectError(const StatusOr<ClusterConfig>& config, const std::string& part) {
  ASSERT_FALSE(config.ok()) << part;
  EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument) << config.status();
  EXPECT_NE(Message(config.status()).find(part), std::string_view::npos) << config.status();
  EXPECT_NE(Message(config.status()).find(kPath), std::string_view::npos) << config.status();
}

TEST(Kubeconfig, TheCurrentContextIsUsed) {
  const StatusOr<ClusterConfig> config = Resolve(kTwoClusters);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://one:6443");
  EXPECT_EQ(config->default_namespace, "default");
  EXPECT_EQ(config->source, "context \"one\" of /home/x/.kube/config");
  EXPECT_EQ(config->credentials->Get()->authorization, "Bearer my-token");
  EXPECT_TRUE(config->warnings.empty());
  EXPECT_EQ(config->proxy_url, "");
}

TEST(Kubeconfig, AnotherContextCanBeChosen) {
  const StatusOr<ClusterConfig> config = Resolve(kTwoClusters, "two");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://two");
  EXPECT_EQ(config->tls_server_name, "kubernetes");
  EXPECT_EQ(config->proxy_url, "http://proxy:80");
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_EQ(config->credentials->Get()->authorization, "Basic dTpw");
}

TEST(Kubeconfig, AContextWithoutUserIsAnonymous) {
  EXPECT_EQ(Resolve(kTwoClusters, "nobody")->credentials->Get()->authorization, "");
}

TEST(Kubeconfig, MissingEntriesAreNamedWithWhatThereIs) {
  ExpectError(Resolve(kTwoClusters, "three"),
              "--context: there is no context \"three\" (available: nobody, one, two)");
  ExpectError(Resolve("{}"), "current-context: expected the name of a context, got none");
  ExpectError(Resolve("{\"current-context\": x}"), "current-context: there is no context \"x\"");
  ExpectError(
      Resolve("{\"current-context\": c, contexts: [{name: c, context: {cluster: a, user: b}}]}"),
      "contexts[0].context.cluster: there is no cluster \"a\" (available: none)");
  ExpectError(Resolve("{\"current-context\": c, contexts: [{name: c, context: {cluster: a, user: "
                      "b}}], clusters: [{name: a, cluster: {server: \"https://s\"}}]}"),
              "contexts[0].context.user: there is no user \"b\"");
}

TEST(Kubeconfig, WrongValuesAreNamedByFileAndPath) {
  ExpectError(Resolve("[1]"), "expected a kubeconfig");
  ExpectError(Resolve("{kind: Pod}"), "expected kind Config");
  ExpectError(Resolve("{}\n---\n{}"), "expected one YAML document");
  ExpectError(Resolve("a: [1"), kPath);
  ExpectError(Resolve("{clusters: {a: 1}}"), "clusters: expected a list");
  ExpectError(Resolve("{clusters: [{cluster: {}}]}"), "clusters[0].name");
  ExpectError(Resolve("{clusters: [{name: a}, {name: a}]}"),
              "clusters[1].name: \"a\" is used twice");
  ExpectError(Resolve(Config("server: [7]", "")), "clusters[0].cluster.server: expected a string");
  ExpectError(Resolve(Config("", "")), "clusters[0].cluster.server: expected https://host:port");
  ExpectError(Resolve(Config("server: \"ftp://s\"", "")),
              "clusters[0].cluster.server: expected https");
  ExpectError(Resolve(Config("server: \"https://u:p@s\"", "")), "credentials belong in users");
  ExpectError(Resolve(Config("server: \"https://s:x\"", "")), "clusters[0].cluster.server");
  ExpectError(Resolve(Config(StrCat(kServer, ", proxy-url: \"socks5://p\""), "")),
              "clusters[0].cluster.proxy-url");
  ExpectError(Resolve(Config(StrCat(kServer, ", certificate-authority-data: \"%%\""), "")),
              "clusters[0].cluster.certificate-authority-data: expected PEM text in base64");
  ExpectError(Resolve(Config(StrCat(kServer, ", certificate-authority-data: bm90IHBlbQ=="), "")),
              "clusters[0].cluster.certificate-authority-data: expected a PEM certificate");
  ExpectError(Resolve(Config(StrCat(kServer, ", certificate-authority: /no/such.crt"), "")),
              "clusters[0].cluster.certificate-authority: open /no/such.crt");
  ExpectError(Resolve(Config(kServer, "tokenFile: /no/such/token")), "open /no/such/token");
  ExpectError(Resolve(Config(kServer, "token: \"a b\"")), "users[0].user.token");
  ExpectError(Resolve(Config(kServer, "token: a, username: b")), "exclude each other");
  ExpectError(Resolve(Config(kServer, "client-certificate: /a")),
              "users[0].user: client-certificate and client-key belong together");
  ExpectError(Resolve(Config(kServer, "auth-provider: {name: gcp}")),
              "users[0].user.auth-provider: \"gcp\"");
  ExpectError(Resolve(Config(kServer, "as-groups: [g]")), "users[0].user.as: expected a user");
  ExpectError(Resolve(Config(kServer, "as: \"a\\nb\"")), "control characters in Impersonate-User");
}

TEST(Kubeconfig, SecretsAreNotShownInErrors) {
  const Status status = Resolve(Config(kServer, "token: \"s3cret and more\"")).status();
  EXPECT_EQ(Message(status).find("s3cret"), std::string_view::npos) << status;
}

TEST(Kubeconfig, AnUnusedBrokenUserDoesNoHarm) {
  EXPECT_TRUE(
      Resolve("{\"current-context\": c, clusters: [{name: c, cluster: {server: \"https://s\"}}],"
              "users: [{name: old, user: {auth-provider: {name: gcp}}}, {name: odd, user: "
              "{exec: {apiVersion: v0}}}], contexts: [{name: c, context: {cluster: c}}]}")
          .ok());
}

TEST(Kubeconfig, NumbersThatNobodyQuotedAreStrings) {
  EXPECT_EQ(Resolve(Config(kServer, "token: 1234"))->credentials->Get()->authorization,
            "Bearer 1234");
  EXPECT_EQ(Resolve(Config(kServer, "as: jane, as-groups: [1, true]"))->headers[2].second, "true");
}

TEST(Kubeconfig, AnEmptyFileIsAnEmptyConfig) {
  for (const char* text : {"", "# nothing\n", "{}"}) {
    const StatusOr<Kubeconfig> config = ParseKubeconfig(text, kPath);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config->contexts.empty());
  }
}

TEST(Kubeconfig, AServerWithoutSchemeFollowsWhetherThereIsTls) {
  EXPECT_EQ(Resolve(Config("server: \"s:8080\"", ""))->server, "http://s:8080");
  EXPECT_EQ(Resolve(Config("server: \"s:8080\", insecure-skip-tls-verify: true", ""))->server,
            "https://s:8080");
}

TEST(Kubeconfig, CredentialsInTheClearAreWarnedOf) {
  EXPECT_EQ(Resolve(Config("server: \"http://s\"", "token: t"))->warnings.size(), 1u);
  EXPECT_TRUE(Resolve(Config("server: \"http://s\"", ""))->warnings.empty());
  EXPECT_TRUE(Resolve(Config(kServer, "token: t"))->warnings.empty());
}

TEST(Kubeconfig, InsecureIsWarnedOfAndExcludesAnAuthority) {
  const StatusOr<ClusterConfig> config =
      Resolve(Config(StrCat(kServer, ", insecure-skip-tls-verify: true"), ""));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->insecure_skip_tls_verify);
  ASSERT_EQ(config->warnings.size(), 1u);
  EXPECT_EQ(config->warnings[0].find("/home/x/.kube/config: clusters[0].cluster.insecure"), 0u)
      << config->warnings[0];
  ExpectError(
      Resolve(Config(StrCat(kServer, ", insecure-skip-tls-verify: true, certificate-authority: /a"),
                     "")),
      "exclude each other");
}

TEST(Kubeconfig, PathsAreRelativeToTheirFile) {
  const StatusOr<Kubeconfig> config = ParseKubeconfig(
      Config(StrCat(kServer, ", certificate-authority: certs/ca.crt"),
             "client-certificate: ../me.crt, client-key: /abs/me.key, tokenFile: token, exec: "
             "{command: bin/plugin}"),
      kPath);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->clusters.at("c").certificate_authority.path, "/home/x/.kube/certs/ca.crt");
  const KubeconfigUser& user = config->users.at("u");
  EXPECT_EQ(user.client_certificate.path, "/home/x/me.crt");
  EXPECT_EQ(user.client_key.path, "/abs/me.key");
  EXPECT_EQ(user.token_file, "/home/x/.kube/token");
  EXPECT_EQ(user.exec->command, "/home/x/.kube/bin/plugin");
  EXPECT_EQ(
      ParseKubeconfig(Config(kServer, "tokenFile: token"), "sub/config")->users.at("u").token_file,
      "sub/token");
  EXPECT_EQ(ParseKubeconfig(Config(kServer, "exec: {command: ./plugin}"), "config")
                ->users.at("u")
                .exec->command,
            "./plugin");
  EXPECT_EQ(ParseKubeconfig(Config(kServer, "exec: {command: plugin}"), kPath)
                ->users.at("u")
                .exec->command,
            "plugin");
}

TEST(Kubeconfig, DataWinsOverAFileWithAWarning) {
  const StatusOr<Kubeconfig> config = ParseKubeconfig(
      Config(StrCat(kServer, ", certificate-authority: /a, certificate-authority-data: UEVN"), ""),
      kPath);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config->clusters.at("c").certificate_authority.Read(), "PEM");
  ASSERT_EQ(config->warnings.size(), 1u);
  EXPECT_NE(config->warnings[0].find("certificate-authority-data is used"), std::string::npos)
      << config->warnings[0];
}

TEST(Kubeconfig, ImpersonationBecomesHeaders) {
  const StatusOr<ClusterConfig> config = Resolve(Config(
      kServer,
      "as: jane, as-uid: \"7\", as-groups: [dev, ops], as-user-extra: {\"acme.com/a%b\": [v, w]}"));
  ASSERT_TRUE(config.ok()) << config.status();
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"Impersonate-User", "jane"},
      {"Impersonate-Uid", "7"},
      {"Impersonate-Group", "dev"},
      {"Impersonate-Group", "ops"},
      {"Impersonate-Extra-acme.com%2Fa%25b", "v"},
      {"Impersonate-Extra-acme.com%2Fa%25b", "w"}};
  EXPECT_EQ(config->headers, expected);
}

TEST(Kubeconfig, ProxiesComeFromTheEnvironmentWhenTheFileNamesNone) {
  const Kubeconfig config = *ParseKubeconfig(kTwoClusters, kPath);
  ResolveOptions options;
  options.environment = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "HTTPS_PROXY") return "corp:3128";
    return std::nullopt;
  };
  EXPECT_EQ(ResolveKubeconfig(config, options)->proxy_url, "http://corp:3128");
  options.context = "two";
  EXPECT_EQ(ResolveKubeconfig(config, options)->proxy_url, "http://proxy:80");
}

TEST(Merge, TheFirstFileToHaveSomethingWins) {
  const char* first =
      "{users: [{name: u, user: {token: first}}], contexts: [{name: c, context: {cluster: c, user: "
      "u}}]}";
  const char* second =
      "{\"current-context\": c, users: [{name: u, user: {token: second, as: jane}}, {name: v, "
      "user: "
      "{}}], clusters: [{name: c, cluster: {server: \"https://s\"}}]}";
  const Kubeconfig merged =
      MergeKubeconfigs({*ParseKubeconfig(first, "/a"), *ParseKubeconfig(second, "/b")});
  EXPECT_EQ(merged.current_context, "c");
  EXPECT_EQ(merged.users.at("u").token, "first");
  EXPECT_EQ(merged.users.at("u").as, "");  // entries are not merged member by member
  EXPECT_EQ(merged.users.count("v"), 1u);
  ResolveOptions options;
  options.environment = NoVariables;
  const StatusOr<ClusterConfig> config = ResolveKubeconfig(merged, options);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->source, "context \"c\" of /a:/b");
}

TEST(Exec, IsReadAsAWhole) {
  const StatusOr<Kubeconfig> config = ParseKubeconfig(
      Config(
          StrCat(kServer,
                 ", extensions: [{name: client.authentication.k8s.io/exec, extension: {a: 1}}]"),
          "exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, args: [a, b], "
          "env: [{name: NAME, value: v}], interactiveMode: Never, provideClusterInfo: true, "
          "installHint: ask}"),
      kPath);
  ASSERT_TRUE(config.ok()) << config.status();
  const KubeconfigUser& user = config->users.at("u");
  EXPECT_TRUE(user.exec_problem.ok()) << user.exec_problem;
  EXPECT_EQ(user.exec->command, "get-token");
  EXPECT_EQ(user.exec->arguments, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(user.exec->environment.size(), 1u);
  EXPECT_EQ(user.exec->interactive_mode, InteractiveMode::kNever);
  EXPECT_EQ(user.exec->install_hint, "ask");
  EXPECT_FALSE(user.exec->cluster_info.empty());
  EXPECT_EQ(config->clusters.at("c").exec_extension, "{\"a\":1}");
}

TEST(Exec, WhatDoesNotFitIsToldToThoseWhoUseIt) {
  const auto exec = [](const std::string& members) {
    return Resolve(Config(kServer, StrCat("exec: {", members, "}")));
  };
  ExpectError(exec("command: x, apiVersion: client.authentication.k8s.io/v1alpha1"),
              "users[0].user.exec.apiVersion: expected client.authentication.k8s.io/v1 or");
  ExpectError(exec("command: x, apiVersion: client.authentication.k8s.io/v1"),
              "users[0].user.exec.interactiveMode: expected Never, IfAvailable or Always");
  ExpectError(exec("command: x, apiVersion: client.authentication.k8s.io/v1beta1, "
                   "interactiveMode: Maybe"),
              "users[0].user.exec.interactiveMode");
  ExpectError(exec("apiVersion: client.authentication.k8s.io/v1beta1"),
              "users[0].user.exec.command: expected the program to run");
  ExpectError(exec("command: x, apiVersion: client.authentication.k8s.io/v1beta1, env: [{name: "
                   "\"a=b\"}]"),
              "users[0].user.exec.env[0].name");
  EXPECT_TRUE(exec("command: x, apiVersion: client.authentication.k8s.io/v1beta1").ok());
}

TEST(Exec, IsNotUsedBesideAToken) {
  const StatusOr<ClusterConfig> config =
      Resolve(Config(kServer, "token: t, exec: {command: /no/such/program}"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->credentials->Get()->authorization, "Bearer t");
}

TEST(Exec, AMissingProgramIsNamedWhenItIsNeeded) {
  const StatusOr<ClusterConfig> config = Resolve(
      Config(kServer,
             "exec: {command: no-such-program-here, apiVersion: client.authentication.k8s.io/v1, "
             "interactiveMode: Never, installHint: \"ask your admin\"}"));
  ASSERT_TRUE(config.ok()) << config.status();
  const Status status = config->credentials->Get().status();
  EXPECT_EQ(status.code(), StatusCode::kUnauthenticated);
  for (const char* part : {"/home/x/.kube/config: users[0].user.exec", "no-such-program-here",
                           "how to install it: ask your admin"}) {
    EXPECT_NE(Message(status).find(part), std::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace tfjob::kube
