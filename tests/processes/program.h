// Runs a program of this workspace as a process, with its output in a file.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace tfjob::processes {

// A running process. Used by one thread only. The destructor asks the process to stop (SIGTERM) and
// waits until it exits.
class Program {
 public:
  // The program inherits the environment of this process; `environment` adds or replaces variables.
  Program(const std::string& path, const std::vector<std::string>& arguments,
          const std::map<std::string, std::string>& environment, const std::string& output);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  // Sends SIGSTOP, and returns when all threads have stopped. On a busy machine, threads may
  // continue to run for some time after the signal.
  void Pause();
  bool Ended();
  // Waits until the process exits. Returns the exit status, or 128 + the signal's number if a
  // signal terminated the process, or -1 if the process did not exit in time.
  int AwaitEnd(Duration timeout);

  // Returns the output so far, including standard error.
  std::string Output() const;
  // Waits until the output contains `text`. Returns false if the process exits or the time
  // expires first.
  bool AwaitOutput(std::string_view text, Duration timeout);

 private:
  const std::string output_;
  pid_t pid_ = 0;
  int status_ = -1;  // as returned by waitpid, once the process has ended
  bool ended_ = false;
};

// Returns the path at which Bazel provides a file of this workspace, such as "operator/cli/tfjob".
std::string Runfile(const std::string& path);

}  // namespace tfjob::processes
