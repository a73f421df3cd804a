#include "operator/cli/cluster_flags.h"

#include <CLI/CLI.hpp>
#include <array>

#include "operator/view/duration.h"
#include "operator/view/flag_checks.h"

namespace tfjob::cli {

// Unchecked values, as the parser writes them.
struct ClusterFlagReader::Texts {
  ClusterFlags cluster;
  std::string request_timeout;
  std::vector<std::string> names;
  std::string output = "table";
  std::string selector;
  std::vector<std::string> replicas;  // --replica
  std::vector<std::string> scale;     // --replicas
  std::string since;
  std::vector<std::string> goals;
  std::string timeout;
  bool all_namespaces = false;
  bool watch = false;
  LogsOptions logs;
};

namespace {

constexpr char kCluster[] = "Cluster";
constexpr std::array kVerbs = {"get",    "describe", "logs", "scale", "suspend",
                               "resume", "restart",  "wait", "top"};

// `T` is ClusterFlagReader::Texts, which is private to its class.
template <typename T>
void AddClusterFlags(CLI::App& app, T& texts) {
  ClusterFlags& flags = texts.cluster;
  app.add_option("-n,--namespace", flags.name_space, "Namespace (default: the context's)")
      ->group(kCluster);
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)")
      ->group(kCluster);
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Kubeconfig file (default: $KUBECONFIG, ~/.kube/config, the pod's service "
                 "account)")
      ->group(kCluster);
  app.add_option("--as", flags.as, "User to act as")->group(kCluster);
  app.add_option("--as-group", flags.as_groups, "Group to act as; may be repeated")
      ->allow_extra_args(false)
      ->group(kCluster);
  app.add_option("--request-timeout", texts.request_timeout,
                 "Time limit for one answer of the server, such as 5s; 0: no limit")
      ->group(kCluster);
}

template <typename T>
CLI::App* AddVerb(CLI::App& app, const char* name, const char* what, T& texts) {
  CLI::App* verb = app.add_subcommand(name, what);
  AddClusterFlags(*verb, texts);
  return verb;
}

template <typename T>
void AddSelection(CLI::App& verb, T& texts) {
  verb.add_option("JOB", texts.names, "Names of TFJobs (default: all)");
  verb.add_flag("-A,--all-namespaces", texts.all_namespaces, "TFJobs of all namespaces");
  verb.add_option("-l,--selector", texts.selector, "Only TFJobs with these labels: KEY=VALUE,...");
}

template <typename T>
void AddReading(CLI::App& app, T& texts) {
  CLI::App* get = AddVerb(app, "get", "List TFJobs, or print them in full", texts);
  AddSelection(*get, texts);
  get->add_option("-o,--output", texts.output, "Output format: wide, name, json or yaml")
      ->check(CLI::IsMember({"table", "wide", "name", "json", "yaml"}));
  get->add_flag("-w,--watch", texts.watch, "Continue with a line for each change");

  CLI::App* describe =
      AddVerb(app, "describe", "Show TFJobs with their pods and events, and why they wait", texts);
  describe->add_option("JOB", texts.names, "Names of TFJobs")->required();

  CLI::App* top = AddVerb(app, "top", "Show the training progress of TFJobs", texts);
  AddSelection(*top, texts);
  top->add_flag("-w,--watch", texts.watch, "Refresh the output repeatedly");
}

template <typename T>
void AddLogs(CLI::App& app, T& texts) {
  LogsOptions& logs = texts.logs;
  CLI::App* verb = AddVerb(app, "logs", "Print the logs of a TFJob's replicas", texts);
  verb->add_option("JOB", logs.name, "Name of a TFJob")->required();
  CLI::Option* follow =
      verb->add_flag("-f,--follow", logs.follow, "Follow the logs until the TFJob has ended");
  verb->add_option("--replica", texts.replicas,
                   "Only this replica, such as worker/1, or this replica type; may be repeated")
      ->allow_extra_args(false);
  verb->add_option("-c,--container", logs.container, "Container whose logs are printed")
      ->capture_default_str();
  verb->add_flag("-p,--previous", logs.previous, "Logs from before the containers' last restart")
      ->excludes(follow);
  verb->add_flag("--timestamps", logs.timestamps, "Print the timestamp of each line");
  verb->add_option("--tail", logs.tail_lines, "Only this many last lines of each log")
      ->check(view::AtLeast(0));
  verb->add_option("--since", texts.since, "Only lines newer than this duration, such as 10m");
}

template <typename T>
void AddChanges(CLI::App& app, T& texts) {
  CLI::App* scale = AddVerb(app, "scale", "Change the replica counts of a TFJob", texts);
  scale->add_option("JOB", texts.names, "Name of a TFJob")->required()->expected(1);
  scale->add_option("--replicas", texts.scale, "TYPE=NUMBER, such as worker=3; may be repeated")
      ->allow_extra_args(false)
      ->required();
  CLI::App* suspend = AddVerb(app, "suspend", "Stop TFJobs until they are resumed", texts);
  suspend->add_option("JOB", texts.names, "Names of TFJobs")->required();
  CLI::App* resume = AddVerb(app, "resume", "Resume suspended TFJobs", texts);
  resume->add_option("JOB", texts.names, "Names of TFJobs")->required();
  CLI::App* restart = AddVerb(app, "restart", "Restart replicas of TFJobs", texts);
  restart->add_option("JOB", texts.names, "Names of TFJobs")->required();
  restart
      ->add_option("--replica", texts.replicas,
                   "Only this replica, such as worker/1, or this replica type; may be repeated")
      ->allow_extra_args(false);
}

template <typename T>
void AddWait(CLI::App& app, T& texts) {
  CLI::App* verb = AddVerb(app, "wait", "Wait until TFJobs reach a state", texts);
  verb->add_option("JOB", texts.names, "Names of TFJobs")->required();
  verb->add_option(
          "--for", texts.goals,
          "Created, Running, Restarting, Suspended, Succeeded, Failed, condition=NAME[=false] or "
          "delete; if repeated, any of them suffices")
      ->allow_extra_args(false)
      ->required();
  verb->add_option("--timeout", texts.timeout, "Time limit, such as 30s (default: no limit)");
}

StatusOr<std::optional<Duration>> ReadDuration(const std::string& text, std::string_view flag) {
  if (text.empty()) return std::optional<Duration>();
  const auto duration = view::ParseDuration(text);
  if (!duration.ok()) return Annotate(duration.status(), flag);
  return std::optional<Duration>(*duration);
}

StatusOr<client::LabelSelector> ReadSelector(const std::string& text) {
  client::LabelSelector labels;
  for (const std::string& pair : CLI::detail::split(text, ',')) {
    const size_t equals = pair.find('=');
    if (text.empty()) break;
    if (equals == std::string::npos || equals == 0 || pair.find("!=") != std::string::npos) {
      return InvalidArgument("--selector: expected KEY=VALUE, got \"", pair, "\"");
    }
    const size_t value = pair.find_first_not_of('=', equals);
    labels[pair.substr(0, equals)] = value == std::string::npos ? "" : pair.substr(value);
  }
  return labels;
}

GetOptions::Output ReadOutput(const std::string& text) {
  using Output = GetOptions::Output;
  if (text == "wide") return Output::kWide;
  if (text == "name") return Output::kName;
  if (text == "json") return Output::kJson;
  return text == "yaml" ? Output::kYaml : Output::kTable;
}

template <typename T>
StatusOr<Selection> ReadSelection(const T& texts) {
  Selection selection{texts.names, texts.all_namespaces, {}};
  ASSIGN_OR_RETURN(selection.labels, ReadSelector(texts.selector));
  if (!selection.all_namespaces) return selection;
  if (!texts.names.empty()) {
    return InvalidArgument(
        "--all-namespaces: cannot be combined with names of TFJobs; give their "
        "namespace with --namespace");
  }
  if (!texts.cluster.name_space.empty()) {
    return InvalidArgument("--all-namespaces and --namespace are mutually exclusive");
  }
  return selection;
}

template <typename T>
StatusOr<ClusterVerb> ReadLogs(const T& texts) {
  LogsOptions options = texts.logs;
  ASSIGN_OR_RETURN(options.replicas, ReplicaChoice::Parse(texts.replicas));
  ASSIGN_OR_RETURN(options.since, ReadDuration(texts.since, "--since"));
  return options;
}

template <typename T>
StatusOr<ClusterVerb> ReadWait(const T& texts) {
  WaitOptions options;
  options.names = texts.names;
  for (const std::string& text : texts.goals) {
    ASSIGN_OR_RETURN(const WaitGoal goal, WaitGoal::Parse(text));
    options.goals.push_back(goal);
  }
  ASSIGN_OR_RETURN(options.timeout, ReadDuration(texts.timeout, "--timeout"));
  return options;
}

template <typename T>
StatusOr<ClusterVerb> ReadVerb(const std::string& verb, const T& texts) {
  if (verb == "describe") return DescribeOptions{texts.names};
  if (verb == "logs") return ReadLogs(texts);
  if (verb == "wait") return ReadWait(texts);
  if (verb == "suspend" || verb == "resume") return SuspendOptions{texts.names, verb == "suspend"};
  if (verb == "scale") {
    ASSIGN_OR_RETURN(auto replicas, ParseScale(texts.scale));
    return ScaleOptions{texts.names.front(), std::move(replicas)};
  }
  if (verb == "restart") {
    ASSIGN_OR_RETURN(ReplicaChoice replicas, ReplicaChoice::Parse(texts.replicas));
    return RestartOptions{texts.names, std::move(replicas)};
  }
  ASSIGN_OR_RETURN(Selection selection, ReadSelection(texts));
  if (verb == "top") return TopOptions{std::move(selection), texts.watch};
  return GetOptions{std::move(selection), ReadOutput(texts.output), texts.watch};
}

}  // namespace

bool TakesJobNames(const std::string& verb) {
  return std::find(kVerbs.begin(), kVerbs.end(), verb) != kVerbs.end();
}

ClusterFlagReader::ClusterFlagReader(CLI::App& app) : app_(app), texts_(std::make_unique<Texts>()) {
  AddClusterFlags(app, *texts_);
  AddReading(app, *texts_);
  AddLogs(app, *texts_);
  AddChanges(app, *texts_);
  AddWait(app, *texts_);
}

ClusterFlagReader::~ClusterFlagReader() = default;

StatusOr<std::optional<ClusterCommand>> ClusterFlagReader::Read() const {
  const auto parsed = app_.get_subcommands();
  const std::string verb = parsed.empty() ? "" : parsed.front()->get_name();
  if (!TakesJobNames(verb)) {
    for (const CLI::Option* option : app_.get_options()) {
      if (option->get_group() != kCluster || option->count() == 0) continue;
      return InvalidArgument(option->get_name(), ": ", verb, " does not use a cluster");
    }
    return std::optional<ClusterCommand>();
  }
  ASSIGN_OR_RETURN(ClusterVerb options, ReadVerb(verb, *texts_));
  ClusterCommand command{texts_->cluster, std::move(options)};
  ASSIGN_OR_RETURN(command.cluster.request_timeout,
                   ReadDuration(texts_->request_timeout, "--request-timeout"));
  return std::optional<ClusterCommand>(std::move(command));
}

}  // namespace tfjob::cli
