// Parses the command line of `tfjob`.
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
// A shell requests completions of the last word.
struct CompleteOptions {
  std::vector<std::string> words;
};
// Makes the program exit with this code: help was requested, or the usage is wrong. The text is
// already printed.
struct Quit {
  int code = view::kSucceeded;
};
using Command = std::variant<Quit, local::RunOptions, ExplainOptions, ValidateOptions,
                             ClusterCommand, CompletionOptions, CompleteOptions, VersionOptions>;

struct CommandLine {
  Command command;
  LogLevel log_level = LogLevel::kWarning;
};

// Parses the arguments. argv[0] tells how the program was called: kubectl runs `kubectl-tfjob` for
// `kubectl tfjob` and `kubectl_complete-tfjob` for completions.
CommandLine ParseCommandLine(int argc, const char* const* argv, view::Console& console);

// Returns the completions of these words as a shell reads them (completion.h).
std::string CompleteLine(const std::vector<std::string>& words, const Connect& connect);

}  // namespace tfjob::cli
