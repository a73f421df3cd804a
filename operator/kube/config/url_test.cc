#include "operator/kube/config/url.h"

#include <gtest/gtest.h>

#include <map>

#include "operator/kube/config/proxy.h"

namespace tfjob::kube {
namespace {

TEST(Url, PartsAreRead) {
  const StatusOr<Url> url = ParseUrl("HTTPS://me:secret@Example.com:6443/clusters/a/");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->user, "me:secret");
  EXPECT_EQ(url->host, "Example.com");
  EXPECT_EQ(url->port, 6443);
  EXPECT_EQ(url->path, "/clusters/a");
  EXPECT_EQ(url->Print(), "https://Example.com:6443/clusters/a");
  EXPECT_EQ(url->Authority(), "Example.com:6443");
}

TEST(Url, PrintsAsItWasRead) {
  for (const char* text : {"https://10.0.0.1", "https://[fd00::1]:443", "http://[::1]",
                           "https://my_host.example-1.com:1/x"}) {
    const StatusOr<Url> url = ParseUrl(text);
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_EQ(url->Print(), text);
  }
}

TEST(Url, WhatIsNoneIsRefused) {
  for (const char* text : {"",
                           "host",
                           "://host",
                           "https://",
                           "https://:443",
                           "https://host:",
                           "https://host:0",
                           "https://host:65536",
                           "https://host:99999999999",
                           "https://host:4x",
                           "https://fd00::1",
                           "https://[fd00::1",
                           "https://[fd00::1]443",
                           "https://[host]",
                           "https://ho st",
                           "https://host/?a=b",
                           "https://host#x",
                           "1https://host",
                           "https://host\n",
                           "https://ho%st"}) {
    EXPECT_EQ(ParseUrl(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(Url, ErrorsDoNotShowPasswords) {
  for (const char* text : {"https://me:secret@host:x", "http://me:secret/x@host:1",
                           "http://me:secret?x@host:1", "http://me:secret#x@host:1",
                           "http://me:a@b:secret/x@host:1", "http://me:secret/x@host/@:x"}) {
    const Status status = ParseUrl(text).status();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_EQ(Message(status).find("secret"), std::string_view::npos) << status;
  }
  EXPECT_EQ(Message(ParseUrl("http://me:pa/ss@proxy:3128").status()),
            "expected host, host:port or [IPv6 address]:port after http://, got a '/' before '@': "
            "write '/' in a user or password as %2F");
  EXPECT_EQ(Message(ParseUrl("http://ho%st/x").status()),
            "expected host, host:port or [IPv6 address]:port after http://, got \"ho%st\"");
}

TEST(ProxyUrl, GetsAPortAndLosesItsPath) {
  EXPECT_EQ(*ParseProxyUrl("http://proxy"), "http://proxy:80");
  EXPECT_EQ(*ParseProxyUrl("http://u:p@proxy:3128/x"), "http://u:p@proxy:3128");
}

// If this URL were accepted, the user would be mistaken for the host and the beginning of the
// password for the port, and errors would show both.
TEST(ProxyUrl, ASlashInThePasswordIsRefused) {
  EXPECT_EQ(Message(ParseProxyUrl("http://me:12/34@proxy:3128").status()),
            "expected a proxy http://user:password@host:port, got a '/' before '@': write '/' in a "
            "user or password as %2F");
  EXPECT_EQ(*ParseProxyUrl("http://me:12%2F34@proxy:3128"), "http://me:12%2F34@proxy:3128");
}

TEST(ProxyUrl, OtherSchemesAreRefused) {
  for (const char* text : {"socks5://proxy:1080", "https://proxy:443", "proxy:3128"}) {
    EXPECT_FALSE(ParseProxyUrl(text).ok()) << text;
  }
}

struct NoProxyCase {
  const char* list;
  const char* host;
  int port;
  bool matches;
};

TEST(NoProxy, ListsHostsDomainsAddressesAndNetworks) {
  const NoProxyCase cases[] = {
      {"", "a.com", 443, false},
      {"*", "a.com", 443, true},
      {"a.com", "a.com", 443, true},
      {"A.com", "a.COM", 443, true},
      {"a.com", "x.a.com", 443, true},
      {"a.com", "ba.com", 443, false},
      {".a.com", "a.com", 443, false},
      {".a.com", "x.a.com", 443, true},
      {"*.a.com", "x.a.com", 443, true},
      {"*.a.com", "a.com", 443, false},
      {"a.com:443", "a.com", 443, true},
      {"a.com:443", "a.com", 6443, false},
      {" b.com , a.com ", "a.com", 443, true},
      {"10.0.0.1", "10.0.0.1", 443, true},
      {"10.0.0.1:6443", "10.0.0.1", 6443, true},
      {"10.0.0.1", "10.0.0.11", 443, false},
      {"10.0.0.0/8", "10.200.3.4", 443, true},
      {"10.0.0.0/8", "11.0.0.1", 443, false},
      {"10.128.0.0/9", "10.127.0.1", 443, false},
      {"10.128.0.0/9", "10.129.0.1", 443, true},
      {"0.0.0.0/0", "8.8.8.8", 443, true},
      {"10.0.0.0/33", "10.0.0.1", 443, false},
      {"10.0.0.0/x", "10.0.0.1", 443, false},
      {"10.0.0.0/8", "host", 443, false},
      {"fd00::/8", "fd00::1", 443, true},
      {"[fd00::1]:443", "fd00::1", 443, true},
      {"[fd00::1]", "fd00::1", 443, true},
      {"fd00::1", "fd00::1", 443, true},
      {"fd00::1", "fd00::2", 443, false},
      {",,:,[],[,:443", "a.com", 443, false},
  };
  for (const NoProxyCase& test : cases) {
    EXPECT_EQ(NoProxyMatches(test.list, test.host, test.port), test.matches)
        << test.list << " and " << test.host << ":" << test.port;
  }
}

StatusOr<std::string> ProxyOf(const std::string& server,
                              const std::map<std::string, std::string>& environment) {
  const EnvironmentLookup lookup = [&environment](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
  return ProxyFromEnvironment(*ParseUrl(server), lookup);
}

TEST(ProxyFromEnvironment, FollowsTheScheme) {
  const std::map<std::string, std::string> environment = {{"HTTPS_PROXY", "http://s:1"},
                                                          {"http_proxy", "h:2"}};
  EXPECT_EQ(*ProxyOf("https://a.com", environment), "http://s:1");
  EXPECT_EQ(*ProxyOf("http://a.com", environment), "http://h:2");
  EXPECT_EQ(*ProxyOf("https://a.com", {}), "");
}

TEST(ProxyFromEnvironment, UpperCaseComesFirstAndEmptyIsUnset) {
  EXPECT_EQ(*ProxyOf("https://a.com", {{"HTTPS_PROXY", "u:1"}, {"https_proxy", "l:1"}}),
            "http://u:1");
  EXPECT_EQ(*ProxyOf("https://a.com", {{"HTTPS_PROXY", ""}, {"https_proxy", "l:1"}}), "http://l:1");
}

TEST(ProxyFromEnvironment, LoopbackAndNoProxyAreDirect) {
  const std::map<std::string, std::string> environment = {{"HTTPS_PROXY", "p:1"},
                                                          {"no_proxy", "b.com:443"}};
  for (const char* server : {"https://localhost:6443", "https://127.0.0.2", "https://[::1]:6443",
                             "https://b.com", "https://x.b.com:443"}) {
    EXPECT_EQ(*ProxyOf(server, environment), "") << server;
  }
  EXPECT_EQ(*ProxyOf("https://b.com:6443", environment), "http://p:1");
}

TEST(ProxyFromEnvironment, ErrorsNameTheVariable) {
  const Status status = ProxyOf("https://a.com", {{"HTTPS_PROXY", "socks5://p:1"}}).status();
  EXPECT_NE(Message(status).find("HTTPS_PROXY"), std::string_view::npos) << status;
}

}  // namespace
}  // namespace tfjob::kube
