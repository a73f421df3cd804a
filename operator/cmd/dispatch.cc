#include "operator/cmd/dispatch.h"

#include <ostream>

#include "runtime/base/version.h"

namespace tfjob::cmd {
namespace {

struct Doer {
  const Connect& connect;
  StopSource& stop;
  Console& console;

  int operator()(const Quit& quit) const { return quit.code; }
  int operator()(const RunOptions& options) const { return Run(options, stop, console); }
  int operator()(const ExplainOptions& options) const { return Explain(options, console); }
  int operator()(const ValidateOptions& options) const { return Validate(options, console); }
  int operator()(const ClusterCommand& command) const {
    return RunCommand(command, connect, stop, console);
  }
  int operator()(const VersionOptions&) const {
    console.out << "tfjob " << kVersion << "\n";
    return kSucceeded;
  }
  int operator()(const CompletionOptions& options) const {
    console.out << CompletionScript(options.shell);
    return kSucceeded;
  }
  int operator()(const CompleteOptions& options) const {
    console.out << CompleteLine(options.words, connect);
    return kSucceeded;
  }
};

}  // namespace

int Dispatch(const CommandLine& line, const Connect& connect, StopSource& stop, Console& console) {
  const int code = std::visit(Doer{connect, stop, console}, line.command);
  console.out.flush();
  if (console.out.good() || code != kSucceeded) return code;
  PrintError(console, Unavailable("its output cannot be written"));
  return kFailed;
}

}  // namespace tfjob::cmd
