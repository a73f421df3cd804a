#include "runtime/selftest/run_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tfjob::selftest {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr ProcessLimits kLong{.seconds = 60};

StatusOr<int> RunShell(const std::string& command, const ProcessLimits& limits = kLong) {
  return RunProcess({"/bin/sh", "-c", command}, limits);
}

TEST(RunProcess, ReturnsTheExitCode) {
  for (const int code : {0, 1, 2, 77}) {
    const auto ran = RunShell(StrCat("exit ", code));
    ASSERT_TRUE(ran.ok()) << ran.status();
    EXPECT_EQ(*ran, code);
  }
}

// If SIGCHLD is ignored, which a process inherits, the system discards the exit codes of children.
TEST(RunProcess, ReturnsTheExitCodeIfSignalsOfChildrenAreIgnored) {
  signal(SIGCHLD, SIG_IGN);
  const auto ran = RunShell("exit 3");
  EXPECT_EQ(signal(SIGCHLD, SIG_DFL), SIG_IGN);
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(*ran, 3);
}

TEST(RunProcess, NamesTheSignal) {
  EXPECT_THAT(std::string(Message(RunShell("kill -SEGV $$").status())),
              StartsWith("the process was killed by signal 11 ("));
}

TEST(RunProcess, KillsAProcessThatTakesTooLong) {
  EXPECT_EQ(RunShell("while :; do :; done", {.seconds = 0}).status(),
            Internal("the process did not exit within 0 s"));
}

// Signal 0 does not end the process, just as SIGKILL cannot end a process that waits inside a
// driver.
TEST(RunProcess, DoesNotWaitForAProcessThatCannotBeKilled) {
  const Status status =
      RunShell("exec sleep 60", {.seconds = 0, .kill_seconds = 0, .kill_signal = 0}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr(" did not exit within 0 s, and cannot be killed"));
}

// Returns the next byte, or -1 at the end of the pipe. Fails the test after 20 s.
int NextByte(int pipe) {
  pollfd readable{.fd = pipe, .events = POLLIN, .revents = 0};
  char byte = 0;
  EXPECT_EQ(poll(&readable, 1, 20'000), 1);
  return readable.revents != 0 && read(pipe, &byte, 1) == 1 ? byte : -1;
}

TEST(RunProcess, LeavesNoProcessBehindWhenItsCallerIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t caller = fork();
  if (caller == 0) {
    close(ends[0]);
    RunShell(StrCat("echo >&", ends[1], "; exec sleep 600"), {.seconds = 600}).IgnoreError();
    _exit(0);
  }
  close(ends[1]);
  EXPECT_EQ(NextByte(ends[0]), '\n');
  kill(caller, SIGKILL);
  EXPECT_EQ(waitpid(caller, nullptr, 0), caller);
  EXPECT_EQ(NextByte(ends[0]), -1);  // the program, which holds the other end, has exited
  close(ends[0]);
}

TEST(RunProcess, SaysWhichProgramCannotRun) {
  EXPECT_EQ(Message(RunProcess({"/nonexistent"}, kLong).status()),
            "cannot run /nonexistent: No such file or directory");
}

}  // namespace
}  // namespace tfjob::selftest
