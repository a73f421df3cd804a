// A program of this workspace that runs as a process, its output in a file.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace tfjob::processes {

// Owned by one thread. The destructor asks it to stop (SIGTERM), and waits for its end.
class Program {
 public:
  // `environment` comes on top of this process's.
  Program(const std::string& path, const std::vector<std::string>& arguments,
          const std::map<std::string, std::string>& environment, const std::string& output);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  bool Ended();
  // Its exit status, 128 + the signal that ended it, -1 when it did not end in time.
  int AwaitEnd(Duration timeout);

  // What it printed up to now, standard error included.
  std::string Output() const;
  // False when it ended, or the time was up, before it printed that.
  bool AwaitOutput(std::string_view text, Duration timeout);

 private:
  const std::string output_;
  pid_t pid_ = 0;
  int status_ = -1;  // as waitpid gives it, once ended
  bool ended_ = false;
};

// Where Bazel has put a file of this workspace: "operator/cli/tfjob".
std::string Runfile(const std::string& path);

}  // namespace tfjob::processes
