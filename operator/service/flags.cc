#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "absl/strings/ascii.h"
#include "operator/kube/leader/lease.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/service/options.h"
#include "operator/view/duration.h"
#include "operator/view/flag_checks.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/base/version.h"
#include "runtime/base/yaml.h"

namespace tfjob::service {
namespace {

// The flags of the Training Operator that have no effect here. They are accepted so that the
// Training Operator's Deployment can be used unchanged.
constexpr const char* kWithoutEffect[] = {"webhook-server-port",
                                          "webhook-service-name",
                                          "webhook-secret-name",
                                          "pytorch-init-container-image",
                                          "pytorch-init-container-template-file",
                                          "pytorch-init-container-max-tries",
                                          "mpi-kubectl-delivery-image",
                                          "zap-devel",
                                          "zap-encoder",
                                          "zap-log-level",
                                          "zap-stacktrace-level",
                                          "zap-time-encoding"};

// Contains the values as the parser stores them, not checked yet.
struct Texts {
  std::string metrics_address = ":8080";
  std::string health_address = ":8081";
  std::string lease_duration = "15s";
  std::string renew_deadline = "10s";
  std::string retry_period = "2s";
  std::string clean_pod_policy = "None";
  std::string job_network_policies = "none";
  std::string log_level = "info";
  std::string log_format = "text";
  std::vector<std::string> schemes;
  std::string config;
  std::map<std::string, std::vector<std::string>> without_effect;
};

void AddLeaderFlags(CLI::App& app, OperatorOptions& options, Texts& texts) {
  app.add_flag("--leader-elect", options.leader_elect,
               "Use a Lease to let only one of several operators work at a time");
  app.add_option("--leader-election-id", options.leader_election_id, "Name of the Lease")
      ->capture_default_str();
  app.add_option("--leader-election-namespace", options.leader_election_namespace,
                 "Namespace of the Lease (default: the operator's own)");
  app.add_option("--leader-election-lease-duration", texts.lease_duration,
                 "How long a leader may be silent before others take over")
      ->capture_default_str();
  app.add_option("--leader-election-renew-deadline", texts.renew_deadline,
                 "How long a leader may go without a renewal before it stops")
      ->capture_default_str();
  app.add_option("--leader-election-retry-period", texts.retry_period,
                 "Interval between attempts to renew or acquire the Lease")
      ->capture_default_str();
}

void AddFlags(CLI::App& app, OperatorOptions& options, Texts& texts) {
  app.add_option("--config", texts.config,
                 "YAML file with the names of these flags as keys; flags take precedence");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Kubeconfig file (default: $KUBECONFIG, the pod's service account, "
                 "~/.kube/config)");
  app.add_option("--namespace", options.name_spaces,
                 "Namespace to work in; may be repeated (default: all) [$KUBEFLOW_NAMESPACE]")
      ->allow_extra_args(false)
      ->delimiter(',');
  app.add_option("--metrics-bind-address", texts.metrics_address,
                 "Address of /metrics; 0 disables it")
      ->capture_default_str();
  app.add_option("--health-probe-bind-address", texts.health_address,
                 "Address of /healthz and /readyz; 0 disables them")
      ->capture_default_str();
  AddLeaderFlags(app, options, texts);
  app.add_option("--controller-threads", options.controller_threads,
                 "Number of jobs reconciled in parallel")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--kube-api-qps", options.kube_api_qps,
                 "Calls per second to the API server; 0: no limit on the client's side")
      ->check(view::AtLeast(0))
      ->capture_default_str();
  app.add_option("--kube-api-burst", options.kube_api_burst, "Burst of calls, 1 or more")
      ->check(view::AtLeast(1))
      ->capture_default_str();
  app.add_option("--gang-scheduler-name", options.gang_scheduler_name,
                 "volcano, native, or the name of a scheduler with the scheduler-plugins' "
                 "PodGroup; a job's annotation tfjob.dev/gang-scheduler takes precedence");
  app.add_flag("--enforce-gang-scheduler", options.enforce_gang_scheduler,
               "Ignore the annotation tfjob.dev/gang-scheduler and the templates' schedulerName: "
               "all jobs use --gang-scheduler-name");
  app.add_option("--job-network-policies", texts.job_network_policies,
                 "Jobs that get a NetworkPolicy: none, annotated (those with the annotation "
                 "tfjob.dev/network-policy: \"true\") or all (but those with \"false\")")
      ->capture_default_str();
  app.add_option("--enable-scheme", texts.schemes, "Accepts only tfjob")->allow_extra_args(false);
  app.add_option("--cluster-domain", options.cluster_domain,
                 "Domain appended to the addresses in TF_CONFIG, such as cluster.local "
                 "[$CUSTOM_CLUSTER_DOMAIN]");
  app.add_option("--job-keys-dir", options.job_keys_dir,
                 "Folder of the operator's keys, one file per key id, from which the keys of jobs "
                 "are derived (default: jobs get no keys)");
  app.add_option("--max-replicas-per-job", options.max_replicas_per_job,
                 "Largest number of replicas of a job; a job with more fails")
      ->check(CLI::Range(int64_t{1}, api::kMaxReplicas))
      ->capture_default_str();
  app.add_option("--default-clean-pod-policy", texts.clean_pod_policy,
                 "cleanPodPolicy of jobs that set none: None, Running or All")
      ->capture_default_str();
  app.add_option("--log-level", texts.log_level, "debug, info, warning, error or off")
      ->capture_default_str();
  app.add_option("--log-format", texts.log_format, "text or json")->capture_default_str();
  for (const char* name : kWithoutEffect) {
    app.add_option(StrCat("--", name), texts.without_effect[name])->expected(0, 1)->group("");
  }
}

bool IsRepeatable(const CLI::Option& option) {
  const std::string name = option.get_single_name();
  return name == "namespace" || name == "enable-scheme";
}

// Makes the last value of a repeated flag win, as with Go's flags. A chart's extraArgs can then
// override the flags that the chart sets.
void LetTheLastWin(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!IsRepeatable(*option)) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
}

// Returns the arguments for the parser. Converts the form "-namespace=x", which Go's flags allow.
std::vector<std::string> Arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {  // the parser reads the arguments from the back
    std::string argument = argv[i];
    if (argument.size() > 2 && argument[0] == '-' && argument[1] != '-') argument.insert(0, "-");
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

std::vector<std::string> KnownKeys(const CLI::App& app) {
  std::vector<std::string> keys;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (name != "help" && name != "version" && name != "config") keys.push_back(name);
  }
  return keys;
}

// Sets the option to `values`, unless a source of higher precedence has already set it.
void Offer(CLI::App& app, const std::string& name, const std::vector<std::string>& values) {
  CLI::Option* option = app.get_option("--" + name);
  if (option->count() > 0 || values.empty()) return;
  option->add_result(values);
  option->run_callback();
}

void OfferEnvironment(CLI::App& app) {
  for (const auto& [flag, variable] : {std::pair{"namespace", "KUBEFLOW_NAMESPACE"},
                                       std::pair{"cluster-domain", "CUSTOM_CLUSTER_DOMAIN"}}) {
    const std::string value = GetEnv(variable).value_or("");
    if (!value.empty()) Offer(app, flag, {value});
  }
}

StatusOr<std::vector<std::string>> ConfigValues(const JsonField& field) {
  std::vector<std::string> values;
  if (!field.present()) return values;
  std::vector<JsonField> elements = {field};
  if (field.value()->is_array()) {
    ASSIGN_OR_RETURN(elements, field.Elements());
  }
  for (const JsonField& element : elements) {
    if (!element.present() || element.value()->is_structured()) {
      return field.Mismatch("a string, a number, true or false, or a list of these");
    }
    values.push_back(element.value()->is_string() ? element.String().value_or("")
                                                  : PrintJson(*element.value()));
  }
  return values;
}

// Applies the configuration file. The error lists every wrong key, one per line.
Status OfferConfig(CLI::App& app, const std::string& path) {
  if (path.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const std::vector<Json> documents, ParseYaml(text, path));
  if (documents.empty()) return OkStatus();
  if (documents.size() > 1) return InvalidArgument(path, ": expected one document");
  ASSIGN_OR_RETURN(const auto members, JsonField(documents.front(), path).Members());
  const std::vector<std::string> known = KnownKeys(app);
  std::string problems;
  const auto note = [&](const std::string& problem) {
    problems += (problems.empty() ? "" : "\n") + problem;
  };
  for (const auto& [key, field] : members) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      note(StrCat(path, ": ", key, ": unknown key", DidYouMean(key, known)));
      continue;
    }
    const auto values = ConfigValues(field);
    if (!values.ok()) {
      note(std::string(Message(values.status())));
      continue;
    }
    if (values->size() > 1 && !IsRepeatable(*app.get_option("--" + key))) {
      note(std::string(Message(field.Mismatch("one value"))));
      continue;
    }
    try {
      Offer(app, key, *values);
    } catch (const CLI::Error& error) {
      note(StrCat(path, ": ", error.what()));
    }
  }
  return problems.empty() ? OkStatus() : InvalidArgument(problems);
}

Status CheckSchemes(const std::vector<std::string>& schemes) {
  for (const std::string& scheme : schemes) {
    if (absl::AsciiStrToLower(scheme) != "tfjob") {
      return InvalidArgument("--enable-scheme: this operator runs TFJobs only, got ", scheme);
    }
  }
  return OkStatus();
}

Status CheckDurations(const Texts& texts, OperatorOptions& options) {
  const auto read = [](const char* flag, const std::string& text, Duration& value) {
    const auto parsed = view::ParseDuration(text);
    if (!parsed.ok()) return Annotate(parsed.status(), flag);
    value = *parsed;
    return OkStatus();
  };
  RETURN_IF_ERROR(
      read("--leader-election-lease-duration", texts.lease_duration, options.lease_duration));
  RETURN_IF_ERROR(
      read("--leader-election-renew-deadline", texts.renew_deadline, options.renew_deadline));
  RETURN_IF_ERROR(read("--leader-election-retry-period", texts.retry_period, options.retry_period));
  if (!options.leader_elect) return OkStatus();
  return Annotate(kube::CheckLeaseTimes({.lease_duration = options.lease_duration,
                                         .renew_deadline = options.renew_deadline,
                                         .retry_period = options.retry_period}),
                  "--leader-election-lease-duration, -renew-deadline, -retry-period");
}

Status CheckGang(const OperatorOptions& options) {
  if (!options.enforce_gang_scheduler) return OkStatus();
  if (policy::GangFromFlag(options.gang_scheduler_name) != policy::Gang()) return OkStatus();
  return InvalidArgument("--enforce-gang-scheduler needs --gang-scheduler-name");
}

Status Finish(const Texts& texts, OperatorOptions& options) {
  RETURN_IF_ERROR(CheckGang(options));
  RETURN_IF_ERROR(CheckSchemes(texts.schemes));
  RETURN_IF_ERROR(CheckDurations(texts, options));
  const auto metrics = serve::ParseBindAddress(texts.metrics_address);
  if (!metrics.ok()) return Annotate(metrics.status(), "--metrics-bind-address");
  options.metrics_address = *metrics;
  const auto health = serve::ParseBindAddress(texts.health_address);
  if (!health.ok()) return Annotate(health.status(), "--health-probe-bind-address");
  options.health_address = *health;
  const auto policy = api::ParseCleanPodPolicy(texts.clean_pod_policy);
  if (!policy) {
    return InvalidArgument("--default-clean-pod-policy: expected None, Running or All, got ",
                           texts.clean_pod_policy);
  }
  options.default_clean_pod_policy = *policy;
  const auto policies = policy::ParseNetworkPolicies(texts.job_network_policies);
  if (!policies) {
    return InvalidArgument("--job-network-policies: expected none, annotated or all, got ",
                           texts.job_network_policies);
  }
  options.job_network_policies = *policies;
  ASSIGN_OR_RETURN(options.log_level, ParseLogLevel(texts.log_level));
  if (texts.log_format != "text" && texts.log_format != "json") {
    return InvalidArgument("--log-format: expected text or json, got ", texts.log_format);
  }
  options.log_format = texts.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  std::erase(options.name_spaces, "");
  return OkStatus();
}

// Prints the parser's message, with a suggestion for an unknown flag.
void PrintUsageError(const CLI::App& app, const CLI::ParseError& error, int argc,
                     const char* const* argv, view::Console& console) {
  std::string message = error.what();
  const std::vector<std::string> known = KnownKeys(app);
  for (int i = 1; i < argc && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr; ++i) {
    std::string name = argv[i];
    if (!name.starts_with("-")) continue;
    name = name.substr(0, name.find('='));
    name.erase(0, name.find_first_not_of('-'));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = NearestName(name, known);
    if (nearest.empty()) continue;
    message += StrCat("; did you mean --", nearest, "?");
    break;
  }
  console.err << "tfjob-operator: " << message << "\nRun with --help for all flags.\n";
}

}  // namespace

std::variant<OperatorOptions, OperatorQuit> ParseOperatorFlags(int argc, const char* const* argv,
                                                               view::Console& console) {
  CLI::App app("Runs TFJobs (kubeflow.org/v1) in a Kubernetes cluster.", "tfjob-operator");
  OperatorOptions options;
  Texts texts;
  AddFlags(app, options, texts);
  LetTheLastWin(app);
  app.set_version_flag("--version", StrCat("tfjob-operator ", kVersion));
  try {
    app.parse(Arguments(argc, argv));
    OfferEnvironment(app);
  } catch (const CLI::Success& help) {  // --help, --version
    app.exit(help, console.out, console.err);
    return OperatorQuit{view::kSucceeded};
  } catch (const CLI::ParseError& error) {
    PrintUsageError(app, error, argc, argv, console);
    return OperatorQuit{view::kBadInput};
  }
  Status status = OfferConfig(app, texts.config);
  if (status.ok()) status = Finish(texts, options);
  if (!status.ok()) {
    console.err << "tfjob-operator: " << Message(status) << "\n";
    return OperatorQuit{view::kBadInput};
  }
  for (const char* name : kWithoutEffect) {
    if (app.get_option(StrCat("--", name))->count() == 0) continue;
    options.warnings.push_back(StrCat("--", name, " has no effect here"));
  }
  return options;
}

}  // namespace tfjob::service
