#include "operator/cli/command_line.h"

#include <ostream>
#include <utility>

#include "operator/cli/cluster_flags.h"
#include "operator/cli/completion.h"
#include "operator/cli/local_verbs.h"
#include "operator/cli/verbs/verbs.h"
#include "runtime/base/version.h"

namespace tfjob::cli {
namespace {

// Implements the hidden verb that shells call to complete the last word: "tfjob __complete get m".
class CompleteVerb : public Verb {
 public:
  explicit CompleteVerb(std::vector<std::string> words)
      : Verb("__complete", ""), words_(std::move(words)) {}

  void AddFlags(FlagSet& /*flags*/) override {}
  int Run(const Invocation& invocation) override {
    invocation.console.out << CompleteLine(words_, invocation.connect);
    return view::kSucceeded;
  }

 private:
  const std::vector<std::string> words_;
};

// Owns the parser of the whole command line, and the verbs in which the parser stores the values of
// the flags.
class Program {
 public:
  explicit Program(const std::string& name);

  CommandParser& parser() { return parser_; }
  // Runs the verb's checks, then moves the verb out and returns it with the global flags. Call this
  // only once, after parsing.
  StatusOr<CommandLine> TakeVerb(const std::string& verb);

 private:
  std::vector<std::unique_ptr<Verb>> verbs_;
  std::string log_level_ = "warning";
  ClusterFlagReader cluster_;
  CommandParser parser_;
};

Program::Program(const std::string& name)
    : parser_(name,
              "Runs and explains TFJobs (kubeflow.org/v1) on this machine, and manages those of a "
              "cluster.") {
  AddClusterVerbs(verbs_);
  AddLocalVerbs(verbs_);
  cluster_.AddTo(parser_.flags());
  parser_.flags()
      .Text("--log-level", log_level_, "debug, info, warning, error or off")
      .ShowDefault()
      .CompleteWords({"debug", "error", "info", "off", "warning"});
  for (const auto& verb : verbs_) {
    FlagSet& flags = parser_.AddCommand(verb->name(), verb->help());
    if (verb->uses_cluster()) cluster_.AddTo(flags);
    verb->AddFlags(flags);
  }
  parser_.AddVersionFlag(StrCat("tfjob ", kVersion));
}

StatusOr<CommandLine> Program::TakeVerb(const std::string& name) {
  CommandLine line;
  for (auto& verb : verbs_) {
    if (verb->name() == name) line.verb = std::move(verb);
  }
  ASSIGN_OR_RETURN(line.log_level, ParseLogLevel(log_level_));
  if (!line.verb->uses_cluster()) RETURN_IF_ERROR(CheckNoClusterFlags(parser_.flags(), name));
  RETURN_IF_ERROR(parser_.Find(name)->RunChecks());
  ASSIGN_OR_RETURN(line.cluster, cluster_.Read());
  return line;
}

std::string ProgramName(const char* path) {
  const std::string text = path;
  const std::string name = text.substr(text.rfind('/') + 1);  // npos + 1 is 0
  return name == "kubectl-tfjob" ? "kubectl tfjob" : name;
}

CommandLine Exit(int code) {
  CommandLine line;
  line.code = code;
  return line;
}

CommandLine Completions(const char* const* begin, const char* const* end) {
  CommandLine line;
  line.verb = std::make_unique<CompleteVerb>(std::vector<std::string>(begin, end));
  return line;
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv, view::Console& console) {
  const std::string name = ProgramName(argv[0]);
  const std::string first = argc > 1 ? argv[1] : "";
  if (name == "kubectl_complete-tfjob") return Completions(argv + 1, argv + argc);
  if (first == "__complete") return Completions(argv + 2, argv + argc);
  Program program(name == "kubectl tfjob" ? name : "tfjob");
  std::vector<std::string> words(argv + 1, argv + argc);
  if (first == "help") {  // treat "help VERB" as "VERB --help"
    words.erase(words.begin());
    words.push_back("--help");
  }
  const auto verb = program.parser().Parse(std::move(words), console.out);
  if (!verb.ok()) {
    view::PrintError(console, verb.status());
    console.err << "Run with --help for more information.\n";
    return Exit(view::kBadInput);
  }
  if (verb->empty()) return Exit(view::kSucceeded);
  auto line = program.TakeVerb(*verb);
  if (line.ok()) return *std::move(line);
  view::PrintError(console, line.status());
  return Exit(view::kBadInput);
}

int RunCommandLine(const CommandLine& line, const Connect& connect, StopSource& stop,
                   view::Console& console) {
  const int code =
      line.verb == nullptr ? line.code : line.verb->Run({line.cluster, connect, stop, console});
  console.out.flush();
  if (console.out.good() || code != view::kSucceeded) return code;
  view::PrintError(console, Unavailable("the output cannot be written"));
  return view::kFailed;
}

std::string CompleteLine(const std::vector<std::string>& words, const Connect& connect) {
  Program program("tfjob");
  return Print(Complete(program.parser(), words, connect));
}

}  // namespace tfjob::cli
