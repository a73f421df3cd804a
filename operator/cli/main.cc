// tfjob: flags → options → one function per verb.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "operator/cli/connect.h"
#include "operator/cli/dispatch.h"

namespace tfjob::cli {
namespace {

int Main(int argc, const char* const* argv) {
  // A closed pipe shows as a broken stream instead, so that a run can shut down in order.
  signal(SIGPIPE, SIG_IGN);
  view::Console console{std::cin, std::cout, std::cerr, isatty(STDOUT_FILENO) == 1};
  const CommandLine line = ParseCommandLine(argc, argv, console);
  ConfigureLogging(line.log_level, LogFormat::kText);
  static StopSource stop;
  // A run must end what it started; every other verb can simply exit.
  if (std::holds_alternative<local::RunOptions>(line.command)) StopOnSignals(stop);
  return Dispatch(line, ConnectToCluster, stop, console);
}

}  // namespace
}  // namespace tfjob::cli

int main(int argc, char** argv) {
  return tfjob::cli::Main(argc, argv);
}
