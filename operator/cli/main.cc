// tfjob: flags → options → one function a verb.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "operator/cli/connect.h"
#include "operator/cli/dispatch.h"

namespace tfjob::cli {
namespace {

int Main(int argc, const char* const* argv) {
  // A reader that goes away is seen in the stream, so that what was started is ended in order.
  signal(SIGPIPE, SIG_IGN);
  view::Console console{std::cin, std::cout, std::cerr, isatty(STDOUT_FILENO) == 1};
  const CommandLine line = ParseCommandLine(argc, argv, console);
  ConfigureLogging(line.log_level, LogFormat::kText);
  static StopSource stop;
  // What a run has started it must end; every other verb may just go.
  if (std::holds_alternative<local::RunOptions>(line.command)) StopOnSignals(stop);
  return Dispatch(line, ConnectToCluster, stop, console);
}

}  // namespace
}  // namespace tfjob::cli

int main(int argc, char** argv) {
  return tfjob::cli::Main(argc, argv);
}
