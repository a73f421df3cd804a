// Runs a program of this workspace as a process, with its output in a file.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace tfjob::processes {

// Used by one thread only. The destructor asks the process to stop (SIGTERM) and waits until
// it exits.
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
  // Sends SIGSTOP, and returns once all threads have stopped. On a busy machine, they may otherwise
  // run for some time after the signal.
  void Pause();
  bool Ended();
  // Waits until the process exits. Returns its exit status; 128 + the signal's number if a signal
  // ended it; -1 if it did not exit in time.
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

// Returns where Bazel put a file of this workspace, for example "operator/cli/tfjob".
std::string Runfile(const std::string& path);

}  // namespace tfjob::processes
