#include "operator/cli/dispatch.h"

#include <ostream>

#include "runtime/base/version.h"

namespace tfjob::cli {
namespace {

struct Doer {
  const Connect& connect;
  StopSource& stop;
  view::Console& console;

  int operator()(const Quit& quit) const { return quit.code; }
  int operator()(const local::RunOptions& options) const {
    return local::Run(options, stop, console);
  }
  int operator()(const ExplainOptions& options) const { return Explain(options, console); }
  int operator()(const ValidateOptions& options) const { return Validate(options, console); }
  int operator()(const ClusterCommand& command) const {
    return RunCommand(command, connect, stop, console);
  }
  int operator()(const VersionOptions&) const {
    console.out << "tfjob " << kVersion << "\n";
    return view::kSucceeded;
  }
  int operator()(const CompletionOptions& options) const {
    console.out << CompletionScript(options.shell);
    return view::kSucceeded;
  }
  int operator()(const CompleteOptions& options) const {
    console.out << CompleteLine(options.words, connect);
    return view::kSucceeded;
  }
};

}  // namespace

int Dispatch(const CommandLine& line, const Connect& connect, StopSource& stop,
             view::Console& console) {
  const int code = std::visit(Doer{connect, stop, console}, line.command);
  console.out.flush();
  if (console.out.good() || code != view::kSucceeded) return code;
  view::PrintError(console, Unavailable("the output cannot be written"));
  return view::kFailed;
}

}  // namespace tfjob::cli
