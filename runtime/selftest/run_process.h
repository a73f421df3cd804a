// Runs a part of the self-test in a separate process, because a fault in a kernel makes the GPU
// unusable for the process.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::selftest {

struct ProcessLimits {
  int seconds = 0;            // after which the process is killed
  int kill_seconds = 10;      // for which RunProcess then waits until the process has exited
  int kill_signal = SIGKILL;  // 0, which kills nothing, only in tests
};

// Runs a program, which inherits the output of this process, and returns its exit code. Returns
// Internal if the program cannot be started, is killed by a signal, or is killed because it runs
// for too long. Returns Unavailable if it then does not exit: a process that waits inside a driver
// cannot be killed. The program is also killed when the calling thread exits.
//
// Sets the action of SIGCHLD to the default, and restores it before returning. Meanwhile, no other
// thread may change the action.
StatusOr<int> RunProcess(const std::vector<std::string>& arguments, const ProcessLimits& limits);

}  // namespace tfjob::selftest
