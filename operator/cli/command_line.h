// Parses the command line of `tfjob` and runs its verb.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/cli/verbs/verb.h"
#include "runtime/base/log.h"

namespace tfjob::cli {

struct CommandLine {
  // The verb, with the values of its flags. It is null if help or the version was requested or the
  // command line is invalid. In these cases, the help, the version or the error has already been
  // printed, and the program must exit with `code`.
  std::unique_ptr<Verb> verb;
  int code = view::kSucceeded;
  ClusterFlags cluster;
  LogLevel log_level = LogLevel::kWarning;
};

// Parses the arguments. argv[0] shows how the program was started: kubectl runs it as
// `kubectl-tfjob` for `kubectl tfjob`, and as `kubectl_complete-tfjob` for completions.
CommandLine ParseCommandLine(int argc, const char* const* argv, view::Console& console);

// Runs the verb, if there is one, and returns the program's exit code. The code is kFailed if the
// output could not be written. If a stop is requested through `stop`, a long-running verb ends
// early.
int RunCommandLine(const CommandLine& line, const Connect& connect, StopSource& stop,
                   view::Console& console);

// Returns the completions of the last word in `words`, in the format that the shell scripts
// read (completion.h).
std::string CompleteLine(const std::vector<std::string>& words, const Connect& connect);

}  // namespace tfjob::cli
