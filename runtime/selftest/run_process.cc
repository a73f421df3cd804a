#include "runtime/selftest/run_process.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::selftest {
namespace {

// Sets the action of SIGCHLD to the default, and restores the previous action when destroyed. If
// the signal were ignored, the system would discard the exit codes of children.
class DefaultChildSignal {
 public:
  DefaultChildSignal() {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &previous_);
  }
  ~DefaultChildSignal() { sigaction(SIGCHLD, &previous_, nullptr); }
  DefaultChildSignal(const DefaultChildSignal&) = delete;
  DefaultChildSignal& operator=(const DefaultChildSignal&) = delete;

 private:
  struct sigaction previous_ = {};
};

// Replaces the child by the program, or writes errno to `errors`. Calls only functions that are
// safe after fork.
[[noreturn]] void Execute(char* const* arguments, pid_t parent, int errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) execv(arguments[0], arguments);  // otherwise, the parent has exited
  const int error = errno;
  if (write(errors, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

// Reads what Execute has written. Returns 0 if the program has been started.
int ErrorOf(int errors) {
  int error = 0;
  return TEMP_FAILURE_RETRY(read(errors, &error, sizeof error)) == sizeof error ? error : 0;
}

StatusOr<pid_t> StartProcess(const std::vector<std::string>& arguments) {
  std::vector<char*> raw;
  for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) return Internal("pipe2: ", strerror(errno));
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) Execute(raw.data(), parent, errors[1]);
  int error = pid < 0 ? errno : 0;
  close(errors[1]);
  if (pid > 0) error = ErrorOf(errors[0]);
  close(errors[0]);
  if (error == 0) return pid;
  if (pid > 0) TEMP_FAILURE_RETRY(waitpid(pid, nullptr, 0));
  return Internal("cannot run ", arguments[0], ": ", strerror(error));
}

StatusOr<int> CodeOf(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Internal("the process was killed by signal ", WTERMSIG(status), " (",
                  strsignal(WTERMSIG(status)), ")");
}

// Waits until the process has exited, and returns how it did. Returns nullopt if it takes longer
// than `seconds`.
std::optional<StatusOr<int>> Await(pid_t pid, int seconds) {
  const Duration deadline = RealClock().Monotonic() + std::chrono::seconds(seconds);
  while (true) {
    int status = 0;
    const pid_t exited = waitpid(pid, &status, WNOHANG);
    if (exited == pid) return CodeOf(status);
    if (exited < 0 && errno != EINTR) return Internal("waitpid: ", strerror(errno));
    if (RealClock().Monotonic() >= deadline) return std::nullopt;
    poll(nullptr, 0, 10);
  }
}

}  // namespace

StatusOr<int> RunProcess(const std::vector<std::string>& arguments, const ProcessLimits& limits) {
  const DefaultChildSignal signal;
  ASSIGN_OR_RETURN(const pid_t pid, StartProcess(arguments));
  if (const auto code = Await(pid, limits.seconds)) return *code;
  kill(pid, limits.kill_signal);
  if (Await(pid, limits.kill_seconds))
    return Internal("the process did not exit within ", limits.seconds, " s");
  return Unavailable("the process ", pid, " did not exit within ", limits.seconds,
                     " s, and cannot be killed: the GPU's driver may hang; restart the machine");
}

}  // namespace tfjob::selftest
