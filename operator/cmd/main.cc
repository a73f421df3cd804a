// tfjob: flags → options → one function a verb.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "operator/cmd/flags.h"
#include "operator/cmd/version.h"

namespace tfjob::cmd {
namespace {

int Main(int argc, const char* const* argv) {
  // A reader that goes away is seen in the stream, so that what was started is ended in order.
  signal(SIGPIPE, SIG_IGN);
  Console console{std::cin, std::cout, std::cerr, isatty(STDOUT_FILENO) == 1};
  CommandLine line = ParseCommandLine(argc, argv, console);
  ConfigureLogging(line.log_level, LogFormat::kText);
  if (const auto* quit = std::get_if<Quit>(&line.command)) return quit->code;
  if (const auto* explain = std::get_if<ExplainOptions>(&line.command))
    return Explain(*explain, console);
  if (const auto* validate = std::get_if<ValidateOptions>(&line.command))
    return Validate(*validate, console);
  if (const auto* run = std::get_if<RunOptions>(&line.command)) {
    static StopSource stop;
    StopOnSignals(stop);
    return Run(*run, stop, console);
  }
  console.out << "tfjob " << kVersion << "\n";
  return kSucceeded;
}

}  // namespace
}  // namespace tfjob::cmd

int main(int argc, char** argv) {
  return tfjob::cmd::Main(argc, argv);
}
