// The command line of `tfjob`.
#pragma once

#include <variant>

#include "operator/cmd/console.h"
#include "operator/cmd/explain.h"
#include "operator/cmd/run.h"
#include "operator/cmd/validate.h"
#include "runtime/base/log.h"

namespace tfjob::cmd {

struct VersionOptions {};
// The program ends with this code: help was asked for, or the usage is wrong; the text is printed
// already.
struct Quit {
  int code = kSucceeded;
};
using Command = std::variant<Quit, RunOptions, ExplainOptions, ValidateOptions, VersionOptions>;

struct CommandLine {
  Command command;
  LogLevel log_level = LogLevel::kWarning;
};

CommandLine ParseCommandLine(int argc, const char* const* argv, Console& console);

}  // namespace tfjob::cmd
