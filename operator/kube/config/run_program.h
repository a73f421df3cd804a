// Runs another program to its end and keeps what it prints.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

struct ProgramOptions {
  std::vector<std::string> arguments;    // [0] is the program: a path, or a name looked for in PATH
  std::vector<std::string> environment;  // "NAME=value", all of it
  // The program shares our terminal: standard input and standard error are ours. Otherwise it reads
  // nothing, and the end of what it writes to standard error is part of the error message.
  bool interactive = false;
  Duration timeout{60s};
  size_t max_output = 1 << 20;
};

// What it wrote to standard output. NotFound: no such program. FailedPrecondition: it ended with
// another code than 0, or wrote more than max_output. DeadlineExceeded: the time was up; it and what
// it started were killed. Blocks the calling thread.
StatusOr<std::string> RunProgram(const ProgramOptions& options);

}  // namespace tfjob::kube
