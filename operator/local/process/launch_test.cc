#include "operator/local/process/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>

#include "operator/local/process/guardian.h"
#include "operator/local/process/mount_plan.h"
#include "operator/local/process/oom.h"
#include "runtime/base/file.h"

namespace tfjob::process {
namespace {

// Makes a system call fail in this process.
void Forbid(int call, int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    folder_ = StrCat(::testing::TempDir(), "launch_test.", getpid());
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    plan_.programs = {"/bin/sh"};
    plan_.working_dir = "/";
    plan_.log_path = folder_ + "/log";
    EXPECT_TRUE(WriteFileAtomically(plan_.log_path, "").ok());
  }
  ~LaunchTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void Script(const std::string& script) { plan_.arguments = {"sh", "-c", script}; }
  StatusOr<Exit> Run() {
    ASSIGN_OR_RETURN(Process process, Launch(plan_));
    return Await(process);
  }
  static StatusOr<Exit> Await(const Process& process) {
    pollfd ready{process.pidfd.get(), POLLIN, 0};
    if (poll(&ready, 1, 20'000) != 1) return DeadlineExceeded("the process does not end");
    return Collect(process);
  }
  std::string Log() { return ReadFile(plan_.log_path).value_or("?"); }
  void AwaitLog(const std::string& text) {
    for (int i = 0; i < 2000 && Log().find(text) == std::string::npos; ++i) usleep(5000);
    ASSERT_NE(Log().find(text), std::string::npos) << Log();
  }
  // Returns whether the process `pid` is alive (a zombie is not).
  static bool Alive(pid_t pid) {
    const auto stat = ReadFile(StrCat("/proc/", pid, "/stat"));
    return stat.ok() && stat->find(") Z") == std::string::npos;
  }
  static void AwaitDeath(pid_t pid) {
    for (int i = 0; i < 2000 && Alive(pid); ++i) usleep(5000);
    EXPECT_FALSE(Alive(pid));
  }

  std::string folder_;
  LaunchPlan plan_;
};

TEST_F(LaunchTest, RunsWithArgumentsEnvironmentFolderAndLog) {
  Script("echo \"$X in $(pwd) as $0 $1\"; echo error >&2; cat; exit 5");
  plan_.arguments.insert(plan_.arguments.end(), {"zero", "one"});
  plan_.environment = {"X=y"};
  plan_.working_dir = "/usr";
  const auto exit = Run();
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->exit_code, 5);
  EXPECT_EQ(exit->signal, 0);
  EXPECT_EQ(Log(), "y in /usr as zero one\nerror\n");
}

TEST_F(LaunchTest, TellsOfSignals) {
  Script("kill -SEGV $$");
  const auto exit = Run();
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->exit_code, 139);
  EXPECT_EQ(exit->signal, SIGSEGV);
}

TEST_F(LaunchTest, ErrorsNameTheCommandAndTheFolder) {
  plan_.programs = {"/nowhere/x", "/usr/nowhere/x"};
  plan_.arguments = {"x"};
  EXPECT_EQ(Message(Run().status()), "command \"x\": No such file or directory");
  plan_.programs = {"/etc/passwd", "/nowhere/x"};
  EXPECT_EQ(Message(Run().status()), "command \"x\": Permission denied");
  plan_.programs = {"/bin/sh"};
  plan_.working_dir = "/nowhere";
  EXPECT_EQ(Message(Run().status()), "workingDir /nowhere: No such file or directory");
}

TEST_F(LaunchTest, InheritsNeitherFilesNorSignalSettings) {
  const FileDescriptor leak(open("/etc/passwd", O_RDONLY));
  signal(SIGTERM, SIG_IGN);
  Script("ls -l /proc/self/fd | grep -c passwd; kill -TERM $$; echo survived");
  const auto exit = Run();
  signal(SIGTERM, SIG_DFL);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->signal, SIGTERM);
  EXPECT_EQ(Log(), "0\n");
}

TEST_F(LaunchTest, CollectKillsWhatIsLeftOfTheGroup) {
  Script("sleep 1000 & echo child $!");
  ASSERT_TRUE(Run().ok());
  const pid_t child = std::stoi(Log().substr(6));
  AwaitDeath(child);
}

TEST_F(LaunchTest, TheGuardianKillsGroupsOfAProgramThatDied) {
  Script("sleep 1000 & echo child $!; wait");
  const pid_t program = fork();
  if (program == 0) {
    auto guardian = Guardian::Create();
    auto process = Launch(plan_);
    if (!guardian.ok() || !process.ok()) _exit(1);
    (*guardian)->Protect(process->pid);
    for (;;) pause();
  }
  AwaitLog("child");
  const pid_t child = std::stoi(Log().substr(6));
  EXPECT_TRUE(Alive(child));
  usleep(50'000);  // gives Protect time, because it does not report completion
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  AwaitDeath(child);
}

TEST_F(LaunchTest, TheDeathOfTheGuardianDoesNotEndTheProgram) {
  auto guardian = Guardian::Create();
  ASSERT_TRUE(guardian.ok());
  const auto children = ReadFile(StrCat("/proc/self/task/", gettid(), "/children"));
  ASSERT_TRUE(children.ok());
  const pid_t pid = std::stoi(*children);
  kill(pid, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  (*guardian)->Protect(getpid());  // by default, SIGPIPE would end this program
  (*guardian)->Release(getpid());
}

// Tests that the guardian closes inherited files even without close_range. Otherwise, it would keep
// its copy of the program's end of the socket open, and would never notice that the program has
// exited.
TEST_F(LaunchTest, TheGuardianClosesFilesOnAKernelWithoutCloseRange) {
  const pid_t program = fork();
  if (program == 0) {
    Forbid(SYS_close_range, ENOSYS);
    auto guardian = Guardian::Create();
    if (!guardian.ok()) _exit(1);
    const std::string files = StrCat("/proc/", (*guardian)->pid(), "/fd");
    for (int i = 0; i < 2000; ++i) {
      if (ListDirectory(files).value_or(std::vector<std::string>()) ==
          std::vector<std::string>{"0"}) {
        _exit(0);
      }
      usleep(5000);
    }
    kill((*guardian)->pid(), SIGKILL);
    _exit(2);
  }
  int status = -1;
  waitpid(program, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(LaunchTest, AKernelWithoutPidfdsIsNamed) {
  Script("true");
  const pid_t program = fork();
  if (program == 0) {
    Forbid(SYS_pidfd_open, ENOSYS);
    const Status status = Launch(plan_).status();
    _exit(WriteFileAtomically(folder_ + "/message", Message(status)).ok() ? 0 : 1);
  }
  waitpid(program, nullptr, 0);
  EXPECT_EQ(ReadFile(folder_ + "/message").value_or("?"),
            "pidfd_open, which needs Linux 5.3 or newer, and a container that permits it: Function "
            "not implemented");
}

TEST_F(LaunchTest, ReleasedGroupsAreNobodysBusiness) {
  Script("sleep 1000");
  auto process = Launch(plan_);
  ASSERT_TRUE(process.ok()) << process.status();
  {
    auto guardian = Guardian::Create();
    ASSERT_TRUE(guardian.ok());
    (*guardian)->Protect(process->pid);
    (*guardian)->Release(process->pid);
  }
  EXPECT_TRUE(Alive(process->pid));
  SignalGroup(*process, SIGKILL);
  EXPECT_EQ(Await(*process)->signal, SIGKILL);
}

TEST(SignalGroupDeathTest, RefusesAProcessThatWasNeverStarted) {
  // Signal 0 is not delivered, so the test is harmless even if the check is missing.
  EXPECT_DEATH(SignalGroup(Process(), 0), "a process to signal has been started");
}

TEST(OomWatchTest, EachKillOfTheKernelAnswersOneCall) {
  const std::string path = StrCat(::testing::TempDir(), "vmstat.", getpid());
  ASSERT_TRUE(WriteFileAtomically(path, "nr_free 5\noom_kill 7\nother 1\n").ok());
  OomWatch watch(path);
  EXPECT_FALSE(watch.Claim());
  ASSERT_TRUE(WriteFileAtomically(path, "nr_free 5\noom_kill 8\nother 1\n").ok());
  EXPECT_TRUE(watch.Claim());
  EXPECT_FALSE(watch.Claim());
  EXPECT_FALSE(OomWatch("/nowhere").Claim());
}

class MountTest : public LaunchTest {
 protected:
  void Mount(const std::string& name, const std::string& source, const std::string& at,
             bool read_only = false, const std::string& sub_path = "") {
    volumes_[name] = {source, false, StrCat("volume \"", name, "\" (hostPath ", source, ")")};
    VolumeMount mount;
    mount.volume = name;
    mount.mount_path = at;
    mount.read_only = read_only;
    mount.sub_path = sub_path;
    container_.mounts.push_back(mount);
  }
  std::string Folder(const std::string& name) {
    const std::string path = StrCat(folder_, "/", name);
    EXPECT_TRUE(MakeDirectories(path).ok());
    return path;
  }
  Status RunMounted(const std::string& script) {
    ASSIGN_OR_RETURN(plan_.mounts, PlanMounts(container_, volumes_, {}, folder_ + "/root"));
    Script(script);
    ASSIGN_OR_RETURN(const Exit exit, Run());
    return exit.exit_code == 0 ? OkStatus() : Internal("exit code ", exit.exit_code, ": ", Log());
  }

  Container container_;
  HostVolumes volumes_;
};

TEST_F(MountTest, MountsWhereTheMachineHasNoSuchFolder) {
  const std::string source = Folder("source");
  Mount("data", source, "/tfjob-nowhere/deep/data");
  const Status status = RunMounted(
      "echo hello > /tfjob-nowhere/deep/data/file && test -x /bin/sh && test -d /proc/self && ls "
      "/tfjob-nowhere/deep");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadFile(source + "/file").value_or("?"), "hello\n");
  EXPECT_EQ(Log(), "data\n");
  EXPECT_FALSE(std::filesystem::exists("/tfjob-nowhere"));
}

TEST_F(MountTest, MountsBesideEntriesThatStayVisible) {
  const std::string parent = Folder("parent");
  ASSERT_TRUE(WriteFileAtomically(parent + "/kept", "kept").ok());
  std::filesystem::create_symlink("kept", parent + "/link");
  Folder("parent/subfolder/inner");
  Mount("data", Folder("source"), parent + "/new/point");
  const Status status =
      RunMounted(StrCat("cd ", parent,
                        " && echo x > new/point/file && cat kept && cat link && ls && "
                        "echo changed > kept && ls subfolder"));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Log(), "keptkeptkept\nlink\nnew\nsubfolder\ninner\n");
  EXPECT_EQ(ReadFile(folder_ + "/source/file").value_or("?"), "x\n");
  EXPECT_EQ(ReadFile(parent + "/kept").value_or("?"), "changed\n");
  EXPECT_FALSE(std::filesystem::exists(parent + "/new"));
}

TEST_F(MountTest, ReadOnlyMountsRefuseWrites) {
  const std::string source = Folder("source");
  Mount("a", source, "/tfjob-nowhere", true);
  Mount("b", source, folder_ + "/elsewhere");
  const Status status =
      RunMounted(StrCat("if echo x 2>&1 > /tfjob-nowhere/file; then exit 1; fi; echo y > ", folder_,
                        "/elsewhere/file && cat /tfjob-nowhere/file"));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_NE(Log().find("Read-only file system"), std::string::npos) << Log();
  EXPECT_TRUE(Log().ends_with("y\n")) << Log();
}

TEST_F(MountTest, MountsFilesSubPathsAndVolumesInVolumes) {
  const std::string outer = Folder("outer"), inner = Folder("inner");
  Folder("outer/sub");
  ASSERT_TRUE(WriteFileAtomically(outer + "/sub/file", "content").ok());
  Mount("file", outer, "/tfjob-nowhere/etc/file", true, "sub/file");
  Mount("outer", outer, "/tfjob-nowhere/outer");
  Mount("inner", inner, "/tfjob-nowhere/outer/made/inner");
  Mount("made", outer, "/tfjob-nowhere/made", false, "new/folder");
  const Status status = RunMounted(
      "cat /tfjob-nowhere/etc/file && echo x > /tfjob-nowhere/outer/made/inner/x && echo y > "
      "/tfjob-nowhere/made/y");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Log(), "content");
  EXPECT_TRUE(std::filesystem::exists(inner + "/x"));
  EXPECT_TRUE(std::filesystem::exists(outer + "/new/folder/y"));
}

TEST_F(MountTest, SourcesAreThoseOfTheMachineEvenWhenAnotherMountHidesThem) {
  const std::string a = Folder("a"), b = Folder("b");
  ASSERT_TRUE(WriteFileAtomically(a + "/who", "a").ok());
  ASSERT_TRUE(WriteFileAtomically(b + "/who", "b").ok());
  Mount("a", a, b);
  Mount("b", b, a);
  const Status status = RunMounted(StrCat("cat ", a, "/who ", b, "/who"));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Log(), "ba");
}

TEST_F(MountTest, ErrorsNameTheVolume) {
  const std::string source = Folder("source");
  Mount("data", source, "/etc/passwd");
  EXPECT_EQ(Message(RunMounted("true")),
            StrCat("volume \"data\" (hostPath ", source,
                   ") at /etc/passwd: a folder cannot be mounted there, since the path is a file"));
  container_.mounts.clear();
  Mount("data", source, "relative");
  EXPECT_NE(Message(RunMounted("true")).find("mountPath: expected an absolute path"),
            std::string_view::npos);
  container_.mounts.clear();
  Mount("data", source, "/tfjob-nowhere", false, "../escape");
  EXPECT_NE(Message(RunMounted("true")).find("without \"..\""), std::string_view::npos);
  container_.mounts.clear();
  Mount("gone", folder_ + "/gone", "/usr/share");
  EXPECT_FALSE(RunMounted("true").ok());
}

TEST_F(MountTest, AMachineThatRefusesMountsIsNamedWithTheVolume) {
  Mount("data", Folder("source"), "/tfjob-nowhere");
  const pid_t child = fork();
  if (child == 0) {
    Forbid(SYS_unshare, EPERM);  // as in a container without permission to mount
    const Status status = RunMounted("true");
    _exit(WriteFileAtomically(folder_ + "/message", Message(status)).ok() ? 0 : 1);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(ReadFile(folder_ + "/message").value_or("?"),
            StrCat("volume \"data\" (hostPath ", folder_,
                   "/source) at /tfjob-nowhere: a private mount namespace is not permitted (run as "
                   "root or allow user namespaces): Operation not permitted"));
}

}  // namespace
}  // namespace tfjob::process
