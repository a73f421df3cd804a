#include "operator/kube/config/exec_plugin.h"

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>

#include "operator/kube/config/pem.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {
namespace {

// Returns the value of KUBERNETES_EXEC_INFO, the environment variable that the plugin reads.
StatusOr<std::string> ExecInfo(const ExecConfig& config, bool interactive) {
  Json spec = {{"interactive", interactive}};
  if (!config.cluster_info.empty()) {
    ASSIGN_OR_RETURN(spec["cluster"], ParseJson(config.cluster_info, "the cluster"));
  }
  return PrintJson(
      {{"apiVersion", config.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}});
}

std::vector<std::string> MergeEnvironment(
    const std::vector<std::string>& own,
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::map<std::string, std::string> merged;
  for (const std::string& entry : own) {
    const size_t equals = entry.find('=', 1);
    if (equals != entry.npos) merged[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const auto& [name, value] : added) merged[name] = value;
  std::vector<std::string> block;
  for (const auto& [name, value] : merged) block.push_back(StrCat(name, "=", value));
  return block;
}

StatusOr<std::shared_ptr<const CertificatePair>> ReadPair(const JsonField& status) {
  CertificatePair pair;
  ASSIGN_OR_RETURN(pair.certificate, status["clientCertificateData"].StringOr(""));
  ASSIGN_OR_RETURN(pair.key, status["clientKeyData"].StringOr(""));
  if (pair.certificate.empty() != pair.key.empty()) {
    return InvalidArgument(
        "status: expected both clientCertificateData and clientKeyData, got one of them");
  }
  if (pair.certificate.empty()) return std::shared_ptr<const CertificatePair>();
  RETURN_IF_ERROR(Annotate(CheckCertificatePair(pair), "status.clientCertificateData"));
  return std::make_shared<const CertificatePair>(std::move(pair));
}

class ExecPlugin : public Credentials {
 public:
  ExecPlugin(ExecConfig config, ExecOptions options)
      : config_(std::move(config)), options_(std::move(options)) {}

  StatusOr<RequestCredentials> Get() override {
    MutexLock lock(mutex_);
    const bool good = current_.version > 0 && !Expired();
    if (good && current_.version > refused_.load()) return current_;
    Status refreshed = Refresh();
    if (refreshed.ok() || (current_.version > 0 && !Expired())) return current_;
    return refreshed;
  }

  void Unauthorized(const RequestCredentials& used) override {
    uint64_t known = refused_.load();
    while (known < used.version && !refused_.compare_exchange_weak(known, used.version)) {
    }
  }

 private:
  bool Expired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return expires_ && options_.clock->Now() >= *expires_;
  }

  Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!failure_.ok() && options_.clock->Monotonic() < pause_until_) return failure_;
    const StatusOr<ExecCredential> credential = Run();
    failure_ = credential.status();
    if (!credential.ok()) {
      pause_until_ = options_.clock->Monotonic() + options_.pause_after_failure;
      return failure_;
    }
    Use(*credential);
    return OkStatus();
  }

  void Use(const ExecCredential& credential) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++current_.version;
    current_.authorization = credential.token.empty() ? "" : StrCat("Bearer ", credential.token);
    const bool same = current_.certificate != nullptr && credential.certificate != nullptr &&
                      *current_.certificate == *credential.certificate;
    if (!same) current_.certificate = credential.certificate;
    expires_ = credential.expires;
  }

  StatusOr<ExecCredential> Run() {
    const StatusOr<ExecCredential> credential = RunOnce();
    if (credential.ok()) return credential;
    const bool absent = credential.status().code() == StatusCode::kNotFound;
    const std::string hint = absent && !config_.install_hint.empty()
                                 ? StrCat("; how to install it: ", config_.install_hint)
                                 : "";
    return Unauthenticated(config_.where, ": the program \"", config_.command,
                           "\": ", Message(credential.status()), hint);
  }

  StatusOr<ExecCredential> RunOnce() {
    const bool interactive =
        config_.interactive_mode != InteractiveMode::kNever && options_.terminal;
    if (config_.interactive_mode == InteractiveMode::kAlways && !interactive) {
      return FailedPrecondition(
          "it needs a terminal (interactiveMode: Always), but standard input is not one");
    }
    ProgramOptions program;
    program.arguments.push_back(config_.command);
    program.arguments.insert(program.arguments.end(), config_.arguments.begin(),
                             config_.arguments.end());
    ASSIGN_OR_RETURN(const std::string info, ExecInfo(config_, interactive));
    auto environment = config_.environment;
    environment.emplace_back("KUBERNETES_EXEC_INFO", info);
    program.environment = MergeEnvironment(options_.environment, environment);
    program.interactive = interactive;
    program.timeout = options_.timeout;
    ASSIGN_OR_RETURN(const std::string output, options_.run(program));
    return ParseExecCredential(output, config_.api_version);
  }

  const ExecConfig config_;
  const ExecOptions options_;
  std::atomic<uint64_t> refused_{0};
  Mutex mutex_;
  RequestCredentials current_ ABSL_GUARDED_BY(mutex_);
  std::optional<Time> expires_ ABSL_GUARDED_BY(mutex_);
  Status failure_ ABSL_GUARDED_BY(mutex_);
  Duration pause_until_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace

StatusOr<ExecCredential> ParseExecCredential(std::string_view text,
                                             const std::string& api_version) {
  // Omit the parser's message, because it would quote the output, which may contain secrets.
  const StatusOr<Json> document = ParseJson(text, "its output");
  if (!document.ok()) return InvalidArgument("expected an ExecCredential as JSON in its output");
  const JsonField root(*document);
  ASSIGN_OR_RETURN(const std::string kind, root["kind"].StringOr(""));
  ASSIGN_OR_RETURN(const std::string version, root["apiVersion"].StringOr(""));
  if (kind != "ExecCredential" || version != api_version) {
    return InvalidArgument("expected an ExecCredential of ", api_version, ", got kind \"",
                           kind.substr(0, 60), "\" of \"", version.substr(0, 60), "\"");
  }
  const JsonField status = root["status"];
  ExecCredential credential;
  ASSIGN_OR_RETURN(credential.token, status["token"].StringOr(""));
  if (!credential.token.empty() && !IsToken(credential.token)) {
    return InvalidArgument(
        "status.token: it contains spaces or other characters not allowed in a token");
  }
  ASSIGN_OR_RETURN(credential.certificate, ReadPair(status));
  if (credential.token.empty() && credential.certificate == nullptr) {
    return InvalidArgument("status: expected a token or a client certificate, got neither");
  }
  ASSIGN_OR_RETURN(const std::string expires, status["expirationTimestamp"].StringOr(""));
  if (!expires.empty()) {
    const StatusOr<Time> time = ParseTime(expires);
    if (!time.ok()) return Annotate(time.status(), "status.expirationTimestamp");
    credential.expires = *time;
  }
  return credential;
}

std::shared_ptr<Credentials> ExecCredentials(ExecConfig config, ExecOptions options) {
  return std::make_shared<ExecPlugin>(std::move(config), std::move(options));
}

}  // namespace tfjob::kube
