// Parses the command line of `tfjob` and runs its verb.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/cli/verbs/verb.h"
#include "runtime/base/log.h"

namespace tfjob::cli {

struct CommandLine {
  // The verb with its flags. It is null if the program must exit with `code`, because help was
  // requested or the usage is wrong; the text has then already been printed.
  std::unique_ptr<Verb> verb;
  int code = view::kSucceeded;
  ClusterFlags cluster;
  LogLevel log_level = LogLevel::kWarning;
};

// Parses the arguments. argv[0] shows how the program was called: kubectl runs `kubectl-tfjob` for
// `kubectl tfjob`, and `kubectl_complete-tfjob` for completions.
CommandLine ParseCommandLine(int argc, const char* const* argv, view::Console& console);

// Runs the verb and returns the program's exit code. `stop` ends a long-running verb.
int RunCommandLine(const CommandLine& line, const Connect& connect, StopSource& stop,
                   view::Console& console);

// Returns the completions of the last of `words`, in the format that a shell reads (completion.h).
std::string CompleteLine(const std::vector<std::string>& words, const Connect& connect);

}  // namespace tfjob::cli
