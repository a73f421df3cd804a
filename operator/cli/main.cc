// Implements the program tfjob: parses the command line and runs one verb.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "operator/cli/command_line.h"
#include "operator/cli/connect.h"

namespace tfjob::cli {
namespace {

int Main(int argc, const char* const* argv) {
  // Ignore SIGPIPE. If the reader closes the pipe, the output stream then fails, and `tfjob run`
  // can shut down in an orderly way.
  signal(SIGPIPE, SIG_IGN);
  view::Console console{std::cin, std::cout, std::cerr, isatty(STDOUT_FILENO) == 1};
  const CommandLine line = ParseCommandLine(argc, argv, console);
  ConfigureLogging(line.log_level, LogFormat::kText);
  static StopSource stop;
  if (line.verb != nullptr && line.verb->stops_in_order()) StopOnSignals(stop);
  return RunCommandLine(line, ConnectToCluster, stop, console);
}

}  // namespace
}  // namespace tfjob::cli

int main(int argc, char** argv) {
  return tfjob::cli::Main(argc, argv);
}
