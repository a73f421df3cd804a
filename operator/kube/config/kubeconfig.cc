#include "operator/kube/config/kubeconfig.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "runtime/base/yaml.h"

namespace tfjob::kube {
namespace {

constexpr char kExecExtension[] = "client.authentication.k8s.io/exec";

// Reads a string. Like client-go, also accepts an unquoted number or boolean ("password: 123456").
StatusOr<std::string> Text(const JsonField& field) {
  const bool scalar =
      field.present() && (field.value()->is_number() || field.value()->is_boolean());
  return scalar ? PrintJson(*field.value()) : field.StringOr("");
}

// Parses one file. Errors contain the path in the document; the caller prepends the name of
// the file.
class Parser {
 public:
  explicit Parser(const std::string& path)
      : path_(path), folder_(std::filesystem::path(path).parent_path()) {}

  StatusOr<Kubeconfig> Parse(const Json& document) {
    const JsonField root(document);
    if (!document.is_object()) return root.Mismatch("a kubeconfig (an object)");
    ASSIGN_OR_RETURN(const std::string kind, root["kind"].StringOr("Config"));
    ASSIGN_OR_RETURN(const std::string version, root["apiVersion"].StringOr("v1"));
    if (kind != "Config" || version != "v1") {
      return InvalidArgument("expected kind Config of apiVersion v1, got kind ", kind,
                             " of apiVersion ", version);
    }
    ASSIGN_OR_RETURN(config_.current_context, Text(root["current-context"]));
    RETURN_IF_ERROR(ReadNamed(root["clusters"], "cluster", config_.clusters,
                              [this](const JsonField& field) { return ReadCluster(field); }));
    RETURN_IF_ERROR(ReadNamed(root["users"], "user", config_.users,
                              [this](const JsonField& field) { return ReadUser(field); }));
    RETURN_IF_ERROR(ReadNamed(root["contexts"], "context", config_.contexts,
                              [this](const JsonField& field) { return ReadContext(field); }));
    return std::move(config_);
  }

 private:
  // Reads a list of {name, <member>}.
  template <typename T, typename Read>
  Status ReadNamed(const JsonField& list, const char* member, std::map<std::string, T>& entries,
                   Read read) {
    ASSIGN_OR_RETURN(const std::vector<JsonField> elements, list.Elements());
    for (const JsonField& element : elements) {
      ASSIGN_OR_RETURN(const std::string name, Text(element["name"]));
      if (!element["name"].present()) return element["name"].Mismatch("a name");
      if (entries.count(name) > 0) {
        return InvalidArgument(element["name"].path(), ": \"", name, "\" is used twice");
      }
      // Pass the field rather than its value: even a missing member has a path that errors can
      // contain.
      const JsonField field = element[member];
      ASSIGN_OR_RETURN(T entry, read(field));
      entry.where = StrCat(path_, ": ", element.path(), ".", member);
      entries[name] = std::move(entry);
    }
    return OkStatus();
  }

  StatusOr<KubeconfigCluster> ReadCluster(const JsonField& field) {
    KubeconfigCluster cluster;
    ASSIGN_OR_RETURN(cluster.server, Text(field["server"]));
    ASSIGN_OR_RETURN(cluster.tls_server_name, Text(field["tls-server-name"]));
    ASSIGN_OR_RETURN(cluster.insecure_skip_tls_verify,
                     field["insecure-skip-tls-verify"].BoolOr(false));
    ASSIGN_OR_RETURN(cluster.proxy_url, Text(field["proxy-url"]));
    ASSIGN_OR_RETURN(cluster.disable_compression, field["disable-compression"].BoolOr(false));
    ASSIGN_OR_RETURN(cluster.certificate_authority, ReadPem(field, "certificate-authority"));
    ASSIGN_OR_RETURN(const std::vector<JsonField> extensions, field["extensions"].Elements());
    for (const JsonField& extension : extensions) {
      ASSIGN_OR_RETURN(const std::string name, Text(extension["name"]));
      const JsonField value = extension["extension"];
      if (name == kExecExtension && value.present()) {
        cluster.exec_extension = PrintJson(*value.value());
      }
    }
    return cluster;
  }

  StatusOr<KubeconfigUser> ReadUser(const JsonField& field) {
    KubeconfigUser user;
    ASSIGN_OR_RETURN(user.client_certificate, ReadPem(field, "client-certificate"));
    ASSIGN_OR_RETURN(user.client_key, ReadPem(field, "client-key"));
    ASSIGN_OR_RETURN(user.token, Text(field["token"]));
    ASSIGN_OR_RETURN(user.token_file, ReadPath(field["tokenFile"]));
    ASSIGN_OR_RETURN(user.username, Text(field["username"]));
    ASSIGN_OR_RETURN(user.password, Text(field["password"]));
    RETURN_IF_ERROR(ReadImpersonation(field, user));
    const JsonField provider = field["auth-provider"];
    if (provider.present()) {
      ASSIGN_OR_RETURN(user.auth_provider, provider["name"].StringOr("unnamed"));
    }
    if (field["exec"].present()) {
      ASSIGN_OR_RETURN(user.exec, ReadExec(field["exec"], user.exec_problem));
    }
    return user;
  }

  static Status ReadImpersonation(const JsonField& field, KubeconfigUser& user) {
    ASSIGN_OR_RETURN(user.as, Text(field["as"]));
    ASSIGN_OR_RETURN(user.as_uid, Text(field["as-uid"]));
    ASSIGN_OR_RETURN(user.as_groups, ReadStrings(field["as-groups"]));
    ASSIGN_OR_RETURN(const auto extra, field["as-user-extra"].Members());
    for (const auto& [key, values] : extra) {
      ASSIGN_OR_RETURN(user.as_user_extra[key], ReadStrings(values));
    }
    return OkStatus();
  }

  StatusOr<KubeconfigContext> ReadContext(const JsonField& field) {
    KubeconfigContext context;
    ASSIGN_OR_RETURN(context.cluster, Text(field["cluster"]));
    ASSIGN_OR_RETURN(context.user, Text(field["user"]));
    ASSIGN_OR_RETURN(context.name_space, Text(field["namespace"]));
    return context;
  }

  // Stores inconsistent settings as an error in `problem` and does not reject the file: the error
  // is reported only if the entry is used.
  StatusOr<ExecConfig> ReadExec(const JsonField& field, Status& problem) {
    ExecConfig exec;
    exec.where = StrCat(path_, ": ", field.path());
    ASSIGN_OR_RETURN(exec.command, Text(field["command"]));
    if (exec.command.find('/') != exec.command.npos) {
      exec.command = Resolve(exec.command);
      // Without a slash, the name would be looked up in PATH.
      if (exec.command.find('/') == exec.command.npos) exec.command.insert(0, "./");
    }
    ASSIGN_OR_RETURN(exec.arguments, ReadStrings(field["args"]));
    ASSIGN_OR_RETURN(const std::vector<JsonField> variables, field["env"].Elements());
    for (const JsonField& variable : variables) {
      ASSIGN_OR_RETURN(const std::string name, Text(variable["name"]));
      ASSIGN_OR_RETURN(const std::string value, Text(variable["value"]));
      if (name.empty() || name.find('=') != name.npos) {
        problem = variable["name"].Mismatch("the name of an environment variable");
      }
      exec.environment.emplace_back(name, value);
    }
    ASSIGN_OR_RETURN(exec.api_version, Text(field["apiVersion"]));
    ASSIGN_OR_RETURN(exec.install_hint, Text(field["installHint"]));
    ASSIGN_OR_RETURN(const bool cluster_info, field["provideClusterInfo"].BoolOr(false));
    if (cluster_info) exec.cluster_info = "{}";
    ASSIGN_OR_RETURN(const std::string mode, Text(field["interactiveMode"]));
    const Status checked = CheckExec(field, exec, mode);
    if (!checked.ok()) problem = checked;
    return exec;
  }

  static Status CheckExec(const JsonField& field, ExecConfig& exec, const std::string& mode) {
    if (exec.command.empty()) return field["command"].Mismatch("the program to run");
    const bool v1 = exec.api_version == "client.authentication.k8s.io/v1";
    if (!v1 && exec.api_version != "client.authentication.k8s.io/v1beta1") {
      return field["apiVersion"].Mismatch(
          "client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1");
    }
    if (mode == "Never") {
      exec.interactive_mode = InteractiveMode::kNever;
    } else if (mode == "Always") {
      exec.interactive_mode = InteractiveMode::kAlways;
    } else if (mode != "IfAvailable" && (v1 || !mode.empty())) {
      return field["interactiveMode"].Mismatch("Never, IfAvailable or Always");
    }
    return OkStatus();
  }

  static StatusOr<std::vector<std::string>> ReadStrings(const JsonField& field) {
    ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
    std::vector<std::string> strings;
    for (const JsonField& element : elements) {
      if (!element.present()) return element.Mismatch("a string");
      ASSIGN_OR_RETURN(std::string text, Text(element));
      strings.push_back(std::move(text));
    }
    return strings;
  }

  // Reads the members <name> (a path) and <name>-data (base64).
  StatusOr<PemSource> ReadPem(const JsonField& field, const std::string& name) {
    PemSource pem;
    ASSIGN_OR_RETURN(pem.path, ReadPath(field[name]));
    const JsonField data = field[name + "-data"];
    ASSIGN_OR_RETURN(const std::string encoded, Text(data));
    if (!absl::Base64Unescape(encoded, &pem.data)) {
      return InvalidArgument(data.path(), ": expected PEM text in base64, got something else");
    }
    if (!pem.data.empty() && !pem.path.empty()) {
      config_.warnings.push_back(StrCat(path_, ": ", data.path(), " is used and ",
                                        field[name].path(), " is ignored: both are set"));
    }
    return pem;
  }

  StatusOr<std::string> ReadPath(const JsonField& field) {
    ASSIGN_OR_RETURN(const std::string path, Text(field));
    return Resolve(path);
  }

  std::string Resolve(const std::string& path) const {
    if (path.empty() || path[0] == '/') return path;
    return (folder_ / path).lexically_normal();
  }

  const std::string path_;
  const std::filesystem::path folder_;
  Kubeconfig config_;
};

}  // namespace

StatusOr<Kubeconfig> ParseKubeconfig(std::string_view text, const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<Json> documents, ParseYaml(text, path));
  if (documents.size() > 1) {
    return InvalidArgument(path, ": expected one YAML document, got ", documents.size());
  }
  Kubeconfig config;
  if (!documents.empty()) {
    StatusOr<Kubeconfig> parsed = Parser(path).Parse(documents[0]);
    if (!parsed.ok()) return Annotate(parsed.status(), path);
    config = *std::move(parsed);
  }
  config.files.push_back(path);
  return config;
}

Kubeconfig MergeKubeconfigs(std::vector<Kubeconfig> files) {
  Kubeconfig merged;
  for (Kubeconfig& file : files) {
    if (merged.current_context.empty()) merged.current_context = file.current_context;
    merged.clusters.merge(file.clusters);
    merged.users.merge(file.users);
    merged.contexts.merge(file.contexts);
    merged.files.insert(merged.files.end(), file.files.begin(), file.files.end());
    merged.warnings.insert(merged.warnings.end(), file.warnings.begin(), file.warnings.end());
  }
  return merged;
}

}  // namespace tfjob::kube
