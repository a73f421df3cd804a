// Which proxy, if any, stands between us and a server: proxy-url of a kubeconfig, else the
// environment as Go's net/http reads it.
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/config/in_cluster.h"
#include "operator/kube/config/url.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// `text` as ClusterConfig::proxy_url: "http://[user@]host:port", port 80 when none is given.
// InvalidArgument for another scheme (https and socks5 proxies are not supported) and for what is no
// URL.
StatusOr<std::string> ParseProxyUrl(std::string_view text);

// From HTTPS_PROXY (for https) or HTTP_PROXY (for http) and NO_PROXY, upper case before lower; ""
// when the server is to be reached directly, as loopback addresses and "localhost" always are. An
// error names the variable.
StatusOr<std::string> ProxyFromEnvironment(const Url& server, const EnvironmentLookup& environment);

// Whether the list NO_PROXY has host:port: "*"; "example.com" (also its subdomains), ".example.com"
// and "*.example.com" (only those); IP addresses; each of these with ":port" or without;
// "10.0.0.0/8".
bool NoProxyMatches(std::string_view no_proxy, std::string_view host, int port);

}  // namespace tfjob::kube
