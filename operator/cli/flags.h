// The command line of `tfjob`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "operator/cli/completion.h"
#include "operator/cli/explain.h"
#include "operator/cli/validate.h"
#include "operator/cli/verbs/command.h"
#include "operator/local/run/run.h"
#include "operator/view/console.h"
#include "runtime/base/log.h"

namespace tfjob::cli {

struct VersionOptions {};
struct CompletionOptions {
  std::string shell;
};
// A shell asks what can stand in the place of the last word.
struct CompleteOptions {
  std::vector<std::string> words;
};
// The program ends with this code: help was asked for, or the usage is wrong; the text is printed
// already.
struct Quit {
  int code = view::kSucceeded;
};
using Command = std::variant<Quit, local::RunOptions, ExplainOptions, ValidateOptions,
                             ClusterCommand, CompletionOptions, CompleteOptions, VersionOptions>;

struct CommandLine {
  Command command;
  LogLevel log_level = LogLevel::kWarning;
};

// argv[0] tells as what the program was called: `kubectl-tfjob` is how kubectl calls `kubectl
// tfjob`, and `kubectl_complete-tfjob` how it asks for completions.
CommandLine ParseCommandLine(int argc, const char* const* argv, view::Console& console);

// What a shell gets to read for these words (completion.h).
std::string CompleteLine(const std::vector<std::string>& words, const Connect& connect);

}  // namespace tfjob::cli
