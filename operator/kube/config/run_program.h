// Runs another program to its end and keeps its output.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

struct ProgramOptions {
  std::vector<std::string> arguments;    // [0] is the program: a path, or a name looked up in PATH
  std::vector<std::string> environment;  // "NAME=value", complete
  // The program shares our terminal: standard input and standard error are ours. Otherwise its
  // input is empty, and the end of its standard error becomes part of the error message.
  bool interactive = false;
  Duration timeout{60s};
  size_t max_output = 1 << 20;
};

// Returns the program's standard output. NotFound: no such program. FailedPrecondition: it exited
// with a code other than 0 or wrote more than max_output. DeadlineExceeded: it timed out and was
// killed together with the processes that it started. Blocks the calling thread.
StatusOr<std::string> RunProgram(const ProgramOptions& options);

}  // namespace tfjob::kube
