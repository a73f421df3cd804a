#include "operator/cmd/flags.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "operator/cmd/cluster_flags.h"
#include "runtime/base/clock.h"

namespace tfjob::cmd {
namespace {

// Everything that the parser writes into; what was not named keeps its default.
struct Values {
  RunOptions run;
  ExplainOptions explain;
  ValidateOptions validate;
  CompletionOptions completion;
  double crash_backoff = 1;
  double report_interval = 5;
  std::string now;
  std::string log_level = "warning";
};

CLI::App* AddRun(CLI::App& app, Values& values) {
  RunOptions& run = values.run;
  CLI::App* verb =
      app.add_subcommand("run", "Run the TFJobs of a manifest on this machine until they end");
  verb->add_option("FILE,-f,--filename", run.file, "The manifest; - is standard input")->required();
  verb->add_flag("--follow", run.follow,
                 "Print the logs of all pods, each line after its pod's name");
  verb->add_flag("--keep", run.keep,
                 "Keep emptyDirs and claimed volumes when the run is over (logs always stay)");
  verb->add_option("--state-dir", run.state_dir,
                   "Folder of logs and volumes; a new one below $TMPDIR otherwise");
  verb->add_option("--trainer", run.trainer,
                   "Program that the image tfjob/trainer stands for; otherwise tfjob-trainer "
                   "beside this program or in "
                   "PATH");
  verb->add_option("--image", run.images,
                   "REPOSITORY=PROGRAM: a further image that stands for a program");
  verb->add_option("--crash-backoff", values.crash_backoff,
                   "Seconds before the second restart of a container; doubles up to 5 minutes")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--report-interval", values.report_interval,
                   "Seconds between progress lines where the output is no terminal")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  return verb;
}

CLI::App* AddExplain(CLI::App& app, Values& values) {
  using Stage = ExplainOptions::Stage;
  using Format = ExplainOptions::Format;
  const std::map<std::string, Stage> stages = {{"defaults", Stage::kDefaults},
                                               {"verdict", Stage::kVerdict},
                                               {"objects", Stage::kObjects},
                                               {"plan", Stage::kPlan}};
  const std::map<std::string, Format> formats = {{"yaml", Format::kYaml}, {"json", Format::kJson}};
  ExplainOptions& explain = values.explain;
  CLI::App* verb = app.add_subcommand(
      "explain", "Print what the operator makes of a manifest; nothing is created");
  verb->add_option("FILE,-f,--filename", explain.file, "The manifest; - is standard input")
      ->required();
  verb->add_option("--print", explain.stage,
                   "defaults: the job as the operator reads it; verdict: what is to be done; "
                   "objects: the services and pods; plan: the calls, in order")
      ->transform(CLI::CheckedTransformer(stages))
      ->required();
  verb->add_option("-o,--output", explain.format, "yaml (the default) or json")
      ->transform(CLI::CheckedTransformer(formats));
  verb->add_option("--observed", explain.observed, "A v1 List of the pods and services that exist");
  verb->add_option("--now", values.now,
                   "The time to decide at, as 2026-11-21T09:30:00Z; the clock's otherwise");
  return verb;
}

void AddValidate(CLI::App& app, Values& values) {
  CLI::App* verb =
      app.add_subcommand("validate", "Check manifests; prints every error with its path");
  verb->add_option("FILE", values.validate.files, "Manifests; - is standard input")->required();
}

void AddCompletion(CLI::App& app, Values& values) {
  CLI::App* verb = app.add_subcommand("completion",
                                      "Print a script that completes this program's "
                                      "words in a shell");
  verb->add_option("SHELL", values.completion.shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
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
  return ParseLogLevel(values.log_level).status();
}

// The whole command line as one parser.
class Parser {
 public:
  explicit Parser(const std::string& program)
      : app_(
            "Runs and explains TFJobs (kubeflow.org/v1) on this machine, and tends those of a "
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
  }

  CLI::App& app() { return app_; }
  // After app().parse().
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
  if (command) line.command = *std::move(command);
  if (verb == "run") line.command = values_.run;
  if (verb == "explain") line.command = values_.explain;
  if (verb == "validate") line.command = values_.validate;
  if (verb == "completion") line.command = values_.completion;
  if (verb == "version") line.command = VersionOptions{};
  return line;
}

int PrintUsage(const CLI::App& app, const CLI::ParseError& error, Console& console) {
  const int code = app.exit(error, console.out, console.err);
  return code == 0 ? kSucceeded : kBadInput;
}

std::string ProgramName(const char* path) {
  const std::string text = path;
  const std::string name = text.substr(text.rfind('/') + 1);  // npos + 1 is 0
  return name == "kubectl-tfjob" ? "kubectl tfjob" : name;
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv, Console& console) {
  const std::string program = ProgramName(argv[0]);
  const std::string first = argc > 1 ? argv[1] : "";
  if (program == "kubectl_complete-tfjob") return {CompleteOptions{{argv + 1, argv + argc}}};
  if (first == "__complete") return {CompleteOptions{{argv + 2, argv + argc}}};
  Parser parser(program == "kubectl tfjob" ? program : "tfjob");
  try {
    parser.app().parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {Quit{PrintUsage(parser.app(), error, console)}};
  }
  auto line = parser.Read();
  if (line.ok()) return *std::move(line);
  PrintError(console, line.status());
  return {Quit{kBadInput}};
}

std::string CompleteLine(const std::vector<std::string>& words, const Connect& connect) {
  Parser parser("tfjob");
  return Print(Complete(parser.app(), words, connect));
}

}  // namespace tfjob::cmd
