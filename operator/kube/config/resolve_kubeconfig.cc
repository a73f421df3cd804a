#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "operator/kube/config/kubeconfig.h"
#include "operator/kube/config/pem.h"
#include "operator/kube/config/proxy.h"
#include "operator/kube/config/url.h"
#include "operator/kube/config/user_credentials.h"
#include "runtime/base/env.h"

namespace tfjob::kube {
namespace {

template <typename T>
std::string Names(const std::map<std::string, T>& entries) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

std::string FilesOf(const Kubeconfig& config) {
  return config.files.empty() ? "the kubeconfig" : absl::StrJoin(config.files, ":");
}

class Resolver {
 public:
  Resolver(const Kubeconfig& config, const ResolveOptions& options)
      : config_(config), options_(options) {}

  StatusOr<ClusterConfig> Resolve() {
    ASSIGN_OR_RETURN(const KubeconfigContext* context, FindContext());
    ASSIGN_OR_RETURN(const KubeconfigCluster* cluster, FindCluster(*context));
    ASSIGN_OR_RETURN(const KubeconfigUser* user, FindUser(*context));
    result_.warnings = config_.warnings;
    if (!context->name_space.empty()) result_.default_namespace = context->name_space;
    RETURN_IF_ERROR(SetServer(*cluster, *user));
    RETURN_IF_ERROR(SetTrust(*cluster));
    RETURN_IF_ERROR(SetImpersonation(*user));
    RETURN_IF_ERROR(SetCredentials(*user, *cluster));
    WarnOfPlainText(*cluster, *user);
    return std::move(result_);
  }

 private:
  StatusOr<const KubeconfigContext*> FindContext() {
    const bool chosen = !options_.context.empty();
    const std::string& name = chosen ? options_.context : config_.current_context;
    if (name.empty()) {
      return InvalidArgument(FilesOf(config_),
                             ": current-context: expected the name of a context, got none "
                             "(available: ",
                             Names(config_.contexts), "); set it, or choose with --context");
    }
    const auto found = config_.contexts.find(name);
    if (found == config_.contexts.end()) {
      return InvalidArgument(FilesOf(config_), ": ", chosen ? "--context" : "current-context",
                             ": there is no context \"", name,
                             "\" (available: ", Names(config_.contexts), ")");
    }
    result_.source = StrCat("context \"", name, "\" of ", FilesOf(config_));
    return &found->second;
  }

  StatusOr<const KubeconfigCluster*> FindCluster(const KubeconfigContext& context) {
    const auto found = config_.clusters.find(context.cluster);
    if (found != config_.clusters.end()) return &found->second;
    return InvalidArgument(context.where, ".cluster: there is no cluster \"", context.cluster,
                           "\" (available: ", Names(config_.clusters), ")");
  }

  // Returns the context's user. If the context names no user, requests are anonymous.
  StatusOr<const KubeconfigUser*> FindUser(const KubeconfigContext& context) {
    if (context.user.empty()) return &nobody_;
    const auto found = config_.users.find(context.user);
    if (found != config_.users.end()) return &found->second;
    return InvalidArgument(context.where, ".user: there is no user \"", context.user,
                           "\" (available: ", Names(config_.users), ")");
  }

  Status SetServer(const KubeconfigCluster& cluster, const KubeconfigUser& user) {
    const std::string where = cluster.where + ".server";
    if (cluster.server.empty()) {
      return InvalidArgument(where, ": expected https://host:port, got nothing");
    }
    const bool tls = !cluster.certificate_authority.empty() || cluster.insecure_skip_tls_verify ||
                     !user.client_certificate.empty();
    const bool has_scheme = cluster.server.find("://") != std::string::npos;
    StatusOr<Url> url = ParseUrl(has_scheme ? cluster.server
                                            : StrCat(tls ? "https://" : "http://", cluster.server));
    if (!url.ok()) return Annotate(url.status(), where);
    if (url->scheme != "https" && url->scheme != "http") {
      return InvalidArgument(where, ": expected https:// or http://, got ", url->scheme, "://");
    }
    if (!url->user.empty()) {
      return InvalidArgument(where, ": expected a URL without a user; credentials belong in users");
    }
    result_.server = url->Print();
    return SetProxy(cluster, *url);
  }

  // Adds a warning if credentials would be sent to a server without TLS.
  void WarnOfPlainText(const KubeconfigCluster& cluster, const KubeconfigUser& user) {
    constexpr std::string_view kPlain = "http://";
    const bool secret = !user.token.empty() || !user.token_file.empty() || !user.username.empty() ||
                        user.exec.has_value();
    if (!secret || result_.server.compare(0, kPlain.size(), kPlain) != 0) return;
    result_.warnings.push_back(StrCat(
        cluster.where, ".server: http:// sends the user's credentials unencrypted; use https://"));
  }

  Status SetProxy(const KubeconfigCluster& cluster, const Url& server) {
    if (cluster.proxy_url.empty()) {
      ASSIGN_OR_RETURN(result_.proxy_url, ProxyFromEnvironment(server, options_.environment));
      return OkStatus();
    }
    StatusOr<std::string> proxy = ParseProxyUrl(cluster.proxy_url);
    if (!proxy.ok()) return Annotate(proxy.status(), cluster.where + ".proxy-url");
    result_.proxy_url = *std::move(proxy);
    return OkStatus();
  }

  Status SetTrust(const KubeconfigCluster& cluster) {
    result_.tls_server_name = cluster.tls_server_name;
    result_.insecure_skip_tls_verify = cluster.insecure_skip_tls_verify;
    if (cluster.insecure_skip_tls_verify) {
      if (!cluster.certificate_authority.empty()) {
        return InvalidArgument(cluster.where,
                               ": insecure-skip-tls-verify and certificate-authority exclude each "
                               "other; remove one");
      }
      result_.warnings.push_back(
          StrCat(cluster.where,
                 ".insecure-skip-tls-verify: the server's certificate is not checked; anyone in "
                 "between can read and change everything"));
    }
    const std::string member = cluster.certificate_authority.data.empty()
                                   ? ".certificate-authority"
                                   : ".certificate-authority-data";
    result_.certificate_authority = cluster.certificate_authority;
    if (cluster.certificate_authority.empty()) return OkStatus();
    const StatusOr<std::string> pem = cluster.certificate_authority.Read();
    const Status checked = pem.ok() ? CheckCertificates(*pem) : pem.status();
    if (checked.ok()) return OkStatus();
    return InvalidArgument(cluster.where, member, ": ", Message(checked));
  }

  Status SetImpersonation(const KubeconfigUser& user) {
    if (user.as.empty()) {
      if (user.as_uid.empty() && user.as_groups.empty() && user.as_user_extra.empty()) {
        return OkStatus();
      }
      return InvalidArgument(user.where,
                             ".as: expected a user, since as-uid, as-groups or as-user-extra are "
                             "set");
    }
    AddHeader("Impersonate-User", user.as);
    if (!user.as_uid.empty()) AddHeader("Impersonate-Uid", user.as_uid);
    for (const std::string& group : user.as_groups) AddHeader("Impersonate-Group", group);
    for (const auto& [key, values] : user.as_user_extra) {
      for (const std::string& value : values) {
        AddHeader(StrCat("Impersonate-Extra-", EscapeHeaderName(key)), value);
      }
    }
    for (const auto& [name, value] : result_.headers) {
      const bool clean = std::none_of(value.begin(), value.end(),
                                      [](unsigned char c) { return c < ' ' || c == 0x7f; });
      if (!clean) return InvalidArgument(user.where, ".as: control characters in ", name);
    }
    return OkStatus();
  }

  void AddHeader(std::string name, std::string value) {
    result_.headers.emplace_back(std::move(name), std::move(value));
  }

  // Percent-encodes the percent sign and all characters that a header name must not contain.
  static std::string EscapeHeaderName(const std::string& key) {
    constexpr std::string_view kAllowed = "!#$&'*+-.^_`|~";
    std::string name;
    for (const char c : key) {
      const bool plain =
          absl::ascii_isalnum(static_cast<unsigned char>(c)) || kAllowed.find(c) != kAllowed.npos;
      if (plain) {
        name += c;
      } else {
        name += StrCat("%", absl::AsciiStrToUpper(absl::BytesToHexString(std::string(1, c))));
      }
    }
    return name;
  }

  Status SetCredentials(const KubeconfigUser& user, const KubeconfigCluster& cluster) {
    RETURN_IF_ERROR(CheckUser(user));
    const bool written = !user.token.empty() || !user.token_file.empty() ||
                         !user.username.empty() || !user.client_certificate.empty();
    if (written) return UseWritten(user);
    if (user.exec) return UseExec(user, cluster);
    result_.credentials = NoCredentials();
    return OkStatus();
  }

  Status CheckUser(const KubeconfigUser& user) {
    if (!user.auth_provider.empty()) {
      return InvalidArgument(user.where, ".auth-provider: \"", user.auth_provider,
                             "\" is of a kind that Kubernetes removed in 1.26; use exec with the "
                             "provider's credential plugin");
    }
    if (!user.token.empty() && !IsToken(user.token)) {
      return InvalidArgument(user.where,
                             ".token: it contains spaces or other characters not allowed in "
                             "a token");
    }
    if (!user.username.empty() && (!user.token.empty() || !user.token_file.empty())) {
      return InvalidArgument(user.where, ": a token and a username exclude each other; remove one");
    }
    if (user.client_certificate.empty() != user.client_key.empty()) {
      return InvalidArgument(user.where,
                             ": client-certificate and client-key belong together; one is missing");
    }
    return OkStatus();
  }

  Status UseWritten(const KubeconfigUser& user) {
    UserCredentialsOptions written;
    written.token = user.token;
    written.token_file = user.token_file;
    written.username = user.username;
    written.password = user.password;
    written.client_certificate = user.client_certificate;
    written.client_key = user.client_key;
    written.clock = options_.clock;
    result_.credentials = UserCredentials(std::move(written));
    const Status usable = result_.credentials->Get().status();
    if (usable.ok()) return OkStatus();
    return InvalidArgument(user.where, ": ", Message(usable));
  }

  Status UseExec(const KubeconfigUser& user, const KubeconfigCluster& cluster) {
    if (!user.exec_problem.ok()) {
      // Shorten "FILE: users[0].user" to "FILE", because the problem already contains the path.
      return Annotate(user.exec_problem, user.where.substr(0, user.where.rfind(": ")));
    }
    ExecConfig exec = *user.exec;
    if (!exec.cluster_info.empty()) {
      ASSIGN_OR_RETURN(exec.cluster_info, ClusterInfo(cluster));
    }
    ExecOptions options;
    options.clock = options_.clock;
    options.terminal = isatty(STDIN_FILENO) != 0;
    // Allow for the time that the user may need to log in.
    if (options.terminal) options.timeout = 5min;
    options.environment = EnvironmentBlock();
    result_.credentials = ExecCredentials(std::move(exec), std::move(options));
    return OkStatus();
  }

  // Returns the value of spec.cluster in an ExecCredential.
  StatusOr<std::string> ClusterInfo(const KubeconfigCluster& cluster) {
    Json info = {{"server", cluster.server}};
    if (!cluster.tls_server_name.empty()) info["tls-server-name"] = cluster.tls_server_name;
    if (cluster.insecure_skip_tls_verify) info["insecure-skip-tls-verify"] = true;
    if (!cluster.proxy_url.empty()) info["proxy-url"] = cluster.proxy_url;
    if (cluster.disable_compression) info["disable-compression"] = true;
    ASSIGN_OR_RETURN(const std::string authority, cluster.certificate_authority.Read());
    if (!authority.empty()) info["certificate-authority-data"] = absl::Base64Escape(authority);
    if (!cluster.exec_extension.empty()) {
      ASSIGN_OR_RETURN(info["config"], ParseJson(cluster.exec_extension, "the extension"));
    }
    return PrintJson(info);
  }

  const Kubeconfig& config_;
  const ResolveOptions& options_;
  const KubeconfigUser nobody_;
  ClusterConfig result_;
};

}  // namespace

StatusOr<ClusterConfig> ResolveKubeconfig(const Kubeconfig& config, const ResolveOptions& options) {
  return Resolver(config, options).Resolve();
}

}  // namespace tfjob::kube
