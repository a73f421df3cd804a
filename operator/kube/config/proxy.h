// Chooses the proxy, if any, between us and a server: proxy-url of a kubeconfig, else the
// environment as Go's net/http reads it.
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/config/in_cluster.h"
#include "operator/kube/config/url.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// Returns `text` in the form of ClusterConfig::proxy_url: "http://[user@]host:port"; the default
// port is 80. InvalidArgument for another scheme (https and socks5 proxies are not supported) and
// for text that is not a URL.
StatusOr<std::string> ParseProxyUrl(std::string_view text);

// Reads HTTPS_PROXY (for https) or HTTP_PROXY (for http) and NO_PROXY, upper case before lower.
// Returns "" if the server is to be reached directly, as loopback addresses and "localhost" always
// are. Errors name the variable.
StatusOr<std::string> ProxyFromEnvironment(const Url& server, const EnvironmentLookup& environment);

// True if the list NO_PROXY covers host:port. Its entries:
//   "*"                                everything
//   "example.com"                      the domain and its subdomains
//   ".example.com", "*.example.com"    only the subdomains
//   an IP address
//   "10.0.0.0/8"                       a network
// Names and addresses may be followed by ":port".
bool NoProxyMatches(std::string_view no_proxy, std::string_view host, int port);

}  // namespace tfjob::kube
