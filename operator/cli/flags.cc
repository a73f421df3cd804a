#include "operator/cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "absl/strings/str_join.h"
#include "operator/cli/cluster_flags.h"
#include "operator/view/flag_checks.h"
#include "runtime/base/clock.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/version.h"

namespace tfjob::cli {
namespace {

// Everything that the parser writes. Values that are not given keep their defaults.
struct Values {
  local::RunOptions run;
  ExplainOptions explain;
  ValidateOptions validate;
  CompletionOptions completion;
  double crash_backoff = 1;
  double report_interval = 5;
  std::string print;
  std::string output = "yaml";
  std::string now;
  std::string gang_scheduler;
  std::string clean_pod_policy = "None";
  std::string log_level = "warning";
};

// Accepts the file either as a positional argument or as a flag, but not both.
void AddFile(CLI::App& verb, std::string& file) {
  CLI::Option* word = verb.add_option("FILE", file, "Manifest file; - is standard input");
  verb.add_option("-f,--filename", file, "Same as FILE")->excludes(word);
}

CLI::App* AddRun(CLI::App& app, Values& values) {
  local::RunOptions& run = values.run;
  CLI::App* verb =
      app.add_subcommand("run", "Run the TFJobs of a manifest on this machine until they end");
  AddFile(*verb, run.file);
  verb->add_flag("--follow", run.follow,
                 "Print the logs of all pods, each line prefixed with its pod's name");
  verb->add_flag("--keep", run.keep,
                 "Keep emptyDirs and claimed volumes after the run (logs are always kept)");
  verb->add_option("--state-dir", run.state_dir,
                   "Folder for logs and volumes (default: a new one in $TMPDIR)");
  verb->add_option("--trainer", run.trainer,
                   "Program to run for the image tfjob/trainer (default: tfjob-trainer beside "
                   "this program or in PATH)");
  verb->add_option("--image", run.images,
                   "REPOSITORY=PROGRAM: run PROGRAM for this image; may be repeated");
  verb->add_option("--crash-backoff", values.crash_backoff,
                   "Seconds before the second restart of a container; doubles up to 5 minutes")
      ->check(view::AtLeast(0))
      ->capture_default_str();
  verb->add_option("--report-interval", values.report_interval,
                   "Seconds between progress lines if the output is not a terminal")
      ->check(view::AtLeast(0))
      ->capture_default_str();
  return verb;
}

// Adds the flags of tfjob-operator that affect the result.
void AddOperatorFlags(CLI::App& verb, Values& values) {
  verb.add_option("--cluster-domain", values.explain.cluster_domain,
                  "The operator's flag: domain appended to the addresses in TF_CONFIG");
  verb.add_option("--gang-scheduler-name", values.gang_scheduler,
                  "The operator's flag: volcano, or the name of a scheduler");
  verb.add_option("--default-clean-pod-policy", values.clean_pod_policy,
                  "The operator's flag: cleanPodPolicy of jobs that set none")
      ->check(CLI::IsMember({"None", "Running", "All"}))
      ->capture_default_str();
}

CLI::App* AddExplain(CLI::App& app, Values& values) {
  ExplainOptions& explain = values.explain;
  CLI::App* verb = app.add_subcommand(
      "explain", "Print what the operator would do with a manifest; creates nothing");
  AddFile(*verb, explain.file);
  verb->add_option("--print", values.print,
                   "defaults: the job as the operator reads it; verdict: the decision; "
                   "objects: the services and pods; plan: the calls, in order")
      ->check(CLI::IsMember({"defaults", "verdict", "objects", "plan"}))
      ->required();
  verb->add_option("-o,--output", values.output, "Output format")
      ->check(CLI::IsMember({"yaml", "json"}))
      ->capture_default_str();
  verb->add_option("--observed", explain.observed,
                   "A v1 List of the pods, services and pod groups that exist");
  verb->add_option("--now", values.now,
                   "Time of the decision, such as 2026-11-21T09:30:00Z (default: now)");
  AddOperatorFlags(*verb, values);
  return verb;
}

void AddValidate(CLI::App& app, Values& values) {
  CLI::App* verb =
      app.add_subcommand("validate", "Check manifests and print every error with its path");
  verb->add_option("FILE", values.validate.files, "Manifests; - is standard input")->required();
}

void AddCompletion(CLI::App& app, Values& values) {
  CLI::App* verb =
      app.add_subcommand("completion", "Print a shell completion script for this program");
  verb->add_option("SHELL", values.completion.shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
}

ExplainOptions::Stage StageOf(const std::string& word) {
  using Stage = ExplainOptions::Stage;
  if (word == "defaults") return Stage::kDefaults;
  if (word == "objects") return Stage::kObjects;
  return word == "plan" ? Stage::kPlan : Stage::kVerdict;
}

void FinishExplain(Values& values) {
  ExplainOptions& explain = values.explain;
  using Format = ExplainOptions::Format;
  explain.stage = StageOf(values.print);
  explain.format = values.output == "json" ? Format::kJson : Format::kYaml;
  explain.options.gang = policy::GangFromFlag(values.gang_scheduler);
  explain.default_clean_pod_policy =
      api::ParseCleanPodPolicy(values.clean_pod_policy).value_or(api::CleanPodPolicy::kNone);
}

Status CheckFile(const std::string& verb, const std::string& file) {
  return file.empty() ? InvalidArgument(verb, ": no manifest given: name a FILE, or - for stdin")
                      : OkStatus();
}

Status Finish(Values& values) {
  const auto seconds = [](double value) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  };
  values.run.crash_backoff = seconds(values.crash_backoff);
  values.run.report_interval = seconds(values.report_interval);
  if (!values.now.empty()) {
    const auto now = ParseTime(values.now);
    if (!now.ok()) return Annotate(now.status(), "--now");
    values.explain.now = *now;
  }
  FinishExplain(values);
  return ParseLogLevel(values.log_level).status();
}

// The whole command line as one parser.
class Parser {
 public:
  explicit Parser(const std::string& program)
      : app_(
            "Runs and explains TFJobs (kubeflow.org/v1) on this machine, and manages those of a "
            "cluster.",
            program),
        cluster_(app_) {
    app_.require_subcommand(1);
    app_.add_option("--log-level", values_.log_level, "debug, info, warning, error or off")
        ->capture_default_str();
    AddRun(app_, values_);
    AddExplain(app_, values_);
    AddValidate(app_, values_);
    AddCompletion(app_, values_);
    app_.add_subcommand("version", "Print the version");
    app_.set_version_flag("--version", StrCat("tfjob ", kVersion));
  }

  CLI::App& app() { return app_; }
  // Call after app().parse().
  StatusOr<CommandLine> Read();

 private:
  CLI::App app_;
  Values values_;
  ClusterFlagReader cluster_;
};

StatusOr<CommandLine> Parser::Read() {
  RETURN_IF_ERROR(Finish(values_));
  ASSIGN_OR_RETURN(auto command, cluster_.Read());
  CommandLine line{Quit{}, *ParseLogLevel(values_.log_level)};
  const std::string verb = app_.get_subcommands().front()->get_name();
  if (verb == "run") RETURN_IF_ERROR(CheckFile(verb, values_.run.file));
  if (verb == "explain") RETURN_IF_ERROR(CheckFile(verb, values_.explain.file));
  if (command) line.command = *std::move(command);
  if (verb == "run") line.command = values_.run;
  if (verb == "explain") line.command = values_.explain;
  if (verb == "validate") line.command = values_.validate;
  if (verb == "completion") line.command = values_.completion;
  if (verb == "version") line.command = VersionOptions{};
  return line;
}

// Explains what is wrong with a line without a verb. The parser only reports that one is missing.
std::string NoVerb(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) return "a command is missing: " + absl::StrJoin(Verbs(app), ", ");
  const bool flag = words.front().starts_with("-");
  return StrCat("unknown ", flag ? "flag " : "command ", words.front(),
                flag ? "" : DidYouMean(words.front(), Verbs(app)));
}

int PrintUsage(const CLI::App& app, const CLI::ParseError& error, view::Console& console) {
  if (dynamic_cast<const CLI::Success*>(&error) != nullptr) {  // --help, --version
    app.exit(error, console.out, console.err);
    return view::kSucceeded;
  }
  const std::string what = app.get_subcommands().empty() ? NoVerb(app) : error.what();
  view::PrintError(console, InvalidArgument(what));
  console.err << "Run with --help for more information.\n";
  return view::kBadInput;
}

std::string ProgramName(const char* path) {
  const std::string text = path;
  const std::string name = text.substr(text.rfind('/') + 1);  // npos + 1 is 0
  return name == "kubectl-tfjob" ? "kubectl tfjob" : name;
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv, view::Console& console) {
  const std::string program = ProgramName(argv[0]);
  const std::string first = argc > 1 ? argv[1] : "";
  if (program == "kubectl_complete-tfjob") return {CompleteOptions{{argv + 1, argv + argc}}};
  if (first == "__complete") return {CompleteOptions{{argv + 2, argv + argc}}};
  Parser parser(program == "kubectl tfjob" ? program : "tfjob");
  std::vector<std::string> words(argv + 1, argv + argc);
  if (first == "help") {  // treat "help VERB" as "VERB --help"
    words.erase(words.begin());
    words.push_back("--help");
  }
  std::reverse(words.begin(), words.end());  // the parser takes them from the back
  try {
    parser.app().parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return {Quit{PrintUsage(parser.app(), error, console)}};
  }
  auto line = parser.Read();
  if (line.ok()) return *std::move(line);
  view::PrintError(console, line.status());
  return {Quit{view::kBadInput}};
}

std::string CompleteLine(const std::vector<std::string>& words, const Connect& connect) {
  Parser parser("tfjob");
  return Print(Complete(parser.app(), words, connect));
}

}  // namespace tfjob::cli
