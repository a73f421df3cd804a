#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/clock.h"
#include "runtime/selftest/selftest.h"

namespace tfjob::selftest {
namespace {

StatusOr<pid_t> SpawnProcess(const std::vector<std::string>& arguments) {
  std::vector<char*> raw;
  for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, raw[0], nullptr, nullptr, raw.data(), environ);
  if (failed != 0) return Internal("cannot run ", arguments[0], ": ", strerror(failed));
  return pid;
}

StatusOr<int> CodeOf(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Internal("the process was ended by signal ", WTERMSIG(status), " (",
                  strsignal(WTERMSIG(status)), ")");
}

}  // namespace

StatusOr<int> RunProcess(const std::vector<std::string>& arguments, int seconds) {
  ASSIGN_OR_RETURN(const pid_t pid, SpawnProcess(arguments));
  const Duration end = RealClock().Monotonic() + std::chrono::seconds(seconds);
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return CodeOf(status);
    if (ended < 0 && errno != EINTR) return Internal("waitpid: ", strerror(errno));
    if (RealClock().Monotonic() >= end) break;
    poll(nullptr, 0, 10);
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return Internal("the process did not end within ", seconds, " s");
}

}  // namespace tfjob::selftest
