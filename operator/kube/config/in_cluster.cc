#include "operator/kube/config/in_cluster.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "operator/kube/config/pem.h"
#include "operator/kube/config/proxy.h"
#include "operator/kube/config/url.h"
#include "operator/kube/config/user_credentials.h"
#include "runtime/base/file.h"

namespace tfjob::kube {
namespace {

constexpr char kHost[] = "KUBERNETES_SERVICE_HOST";
constexpr char kPort[] = "KUBERNETES_SERVICE_PORT";

std::string Value(const InClusterOptions& options, const char* name) {
  return options.environment(name).value_or("");
}

std::string TokenPath(const InClusterOptions& options) {
  return StrCat(options.folder, "/token");
}

// Returns OK if this process runs in a cluster, and an error with the reason if it does not.
Status CheckInCluster(const InClusterOptions& options) {
  for (const char* name : {kHost, kPort}) {
    if (Value(options, name).empty()) {
      return NotFound("not in a cluster: the environment variable ", name, " is not set");
    }
  }
  std::error_code ignored;
  if (!std::filesystem::exists(TokenPath(options), ignored)) {
    return NotFound("the pod has no service account: ", TokenPath(options), " does not exist");
  }
  return OkStatus();
}

StatusOr<Url> ServerOf(const InClusterOptions& options) {
  std::string host = Value(options, kHost);
  // Replace an IPv6 address, which the transport does not support, with a name that the server's
  // certificate also covers.
  if (host.find(':') != host.npos) host = "kubernetes.default.svc";
  StatusOr<Url> url = ParseUrl(StrCat("https://", host, ":", Value(options, kPort)));
  if (!url.ok()) return Annotate(url.status(), StrCat(kHost, " and ", kPort));
  return url;
}

// Returns the pod's namespace from the mounted file; "default" if there is none.
std::string NamespaceOf(const InClusterOptions& options) {
  const StatusOr<std::string> content = ReadFile(StrCat(options.folder, "/namespace"));
  const std::string name(content.ok() ? absl::StripAsciiWhitespace(*content) : "");
  return name.empty() ? "default" : name;
}

}  // namespace

StatusOr<ClusterConfig> InClusterConfig(const InClusterOptions& options) {
  RETURN_IF_ERROR(CheckInCluster(options));
  ClusterConfig config;
  config.source = "in-cluster";
  ASSIGN_OR_RETURN(const Url server, ServerOf(options));
  config.server = server.Print();
  ASSIGN_OR_RETURN(config.proxy_url, ProxyFromEnvironment(server, options.environment));
  config.certificate_authority.path = StrCat(options.folder, "/ca.crt");
  StatusOr<std::string> authority = config.certificate_authority.Read();
  if (!authority.ok()) return InvalidArgument("in-cluster: ", Message(authority.status()));
  RETURN_IF_ERROR(Annotate(CheckCertificates(*authority),
                           StrCat("in-cluster: ", config.certificate_authority.path)));
  config.default_namespace = NamespaceOf(options);

  UserCredentialsOptions user;
  user.token_file = TokenPath(options);
  user.clock = options.clock;
  config.credentials = UserCredentials(std::move(user));
  const Status token = config.credentials->Get().status();
  if (!token.ok()) return InvalidArgument("in-cluster: ", Message(token));
  return config;
}

}  // namespace tfjob::kube
