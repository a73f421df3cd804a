// Determines which proxy, if any, to use to reach a server. This is the kubeconfig's proxy-url or,
// if it is not set, the proxy in the environment variables, which are interpreted as in Go's
// net/http.
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/config/in_cluster.h"
#include "operator/kube/config/url.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// Returns `text` in the form of ClusterConfig::proxy_url, "http://[user@]host:port", with port 80
// if none is given. Returns InvalidArgument for other schemes (https and socks5 proxies are not
// supported) and for text that is not a URL.
StatusOr<std::string> ParseProxyUrl(std::string_view text);

// Reads HTTPS_PROXY (for https) or HTTP_PROXY (for http) and NO_PROXY. Also reads the lower-case
// names; upper case wins. Returns "" if the server should be reached directly. Loopback addresses
// and "localhost" are always reached directly. Errors name the variable.
StatusOr<std::string> ProxyFromEnvironment(const Url& server, const EnvironmentLookup& environment);

// Returns whether the list `no_proxy` covers host:port. Entries are:
//   "*"                                everything
//   "example.com"                      the domain and its subdomains
//   ".example.com", "*.example.com"    only the subdomains
//   an IP address
//   "10.0.0.0/8"                       a network
// Names and addresses may be followed by ":port".
bool NoProxyMatches(std::string_view no_proxy, std::string_view host, int port);

}  // namespace tfjob::kube
