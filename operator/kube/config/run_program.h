// Runs another program until it exits, and returns its output.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

struct ProgramOptions {
  std::vector<std::string> arguments;    // [0] is the program: a path, or a name to find in PATH
  std::vector<std::string> environment;  // the whole environment: "NAME=value"
  // If true, the program uses this process's standard input and standard error, and so its
  // terminal. Otherwise, the program's input is empty, and the end of its standard error becomes
  // part of the error message.
  bool interactive = false;
  Duration timeout{60s};
  size_t max_output = 1 << 20;
};

// Returns the program's standard output. Returns NotFound if the program does not exist;
// FailedPrecondition if it exited with a code other than 0, was killed by a signal, or wrote more
// than max_output; and DeadlineExceeded if it timed out. Kills a program that times out or writes
// too much and, unless the program is interactive, the processes that it started. Blocks the
// calling thread.
StatusOr<std::string> RunProgram(const ProgramOptions& options);

}  // namespace tfjob::kube
