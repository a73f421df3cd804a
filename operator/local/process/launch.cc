#include "operator/local/process/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "runtime/base/check.h"

namespace tfjob::process {
namespace {

using MountKind = MountAction::Kind;

// Describes a failure of the child. The child reports it to the parent through a pipe that a
// successful exec closes.
struct Failure {
  enum class Stage : int { kSetup, kMount, kWorkingDir, kExec };
  Stage stage = Stage::kSetup;
  int index = 0;
  int error = 0;
};

// Contains the strings of a plan as C strings. They are created before the fork, because the child
// must not allocate.
struct Prepared {
  explicit Prepared(const LaunchPlan& plan) : plan(plan) {
    for (const std::string& text : plan.programs) programs.push_back(text.c_str());
    for (const std::string& text : plan.arguments) arguments.push_back(text.data());
    for (const std::string& text : plan.environment) environment.push_back(text.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    snprintf(uid_map.data(), uid_map.size(), "%u %u 1\n", geteuid(), geteuid());
    snprintf(gid_map.data(), gid_map.size(), "%u %u 1\n", getegid(), getegid());
  }

  const LaunchPlan& plan;
  std::vector<const char*> programs;
  std::vector<const char*> arguments;
  std::vector<const char*> environment;
  std::array<char, 64> uid_map{};
  std::array<char, 64> gid_map{};
  sigset_t no_signals{};
  FileDescriptor null, log, failures;
  pid_t parent = -1;
};

// --- Between fork and exec: system calls only. -------------------------------------------------

bool WriteText(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(strlen(text));
  const bool written = write(fd, text, size) == size;
  const int error = errno;
  close(fd);
  errno = error;
  return written;
}

// Makes mounts in this namespace invisible outside it. In a chroot, the root may be a plain folder,
// whose propagation cannot be set. In that case, first bind-mounts the root over itself and enters
// the mount through "/..", because "/" would still lead to the folder below.
bool KeepMountsPrivate() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) return true;
  return errno == EINVAL && mount("/", "/", nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         chdir("/..") == 0 && chroot(".") == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Enters a new mount namespace. If the current user is not permitted to do so, also enters a new
// user namespace, in which mounting is allowed.
bool EnterNamespace(const Prepared& prepared) {
  if (unshare(CLONE_NEWNS) != 0) {
    if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    WriteText("/proc/self/setgroups", "deny");
    if (!WriteText("/proc/self/uid_map", prepared.uid_map.data()) ||
        !WriteText("/proc/self/gid_map", prepared.gid_map.data())) {
      return false;
    }
  }
  return KeepMountsPrivate();
}

bool OpenSource(const MountAction& action, bool read_only, int& slot) {
  slot = open_tree(AT_FDCWD, action.source.c_str(),
                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (slot < 0) return false;
  if (!read_only) return true;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return mount_setattr(slot, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)) ==
         0;
}

bool CoverWithTmpfs(const MountAction& action, int& slot) {
  slot = open(action.source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (slot < 0) return false;
  char options[] = "mode=0000";
  for (int digit = 0; digit < 4; ++digit) {
    options[8 - digit] = static_cast<char>('0' + ((action.mode >> (3 * digit)) & 7));
  }
  return mount("tmpfs", action.target.c_str(), "tmpfs", 0, options) == 0;
}

bool KeepEntry(const MountAction& action, int folder) {
  char path[PATH_MAX + 32] = "/proc/self/fd/";
  size_t end = strlen(path);
  char digits[12];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + folder % 10);
    folder /= 10;
  } while (folder > 0);
  while (count > 0) path[end++] = digits[--count];
  path[end++] = '/';
  if (action.source.size() >= sizeof(path) - end) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(path + end, action.source.c_str(), action.source.size() + 1);
  return mount(path, action.target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

bool MakeFile(const MountAction& action) {
  const int fd = open(action.target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  close(fd);
  return true;
}

bool ChangeRoot(const MountAction& action) {
  return chdir(action.target.c_str()) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
         umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
}

bool CarryOut(const MountAction& action, const Prepared& prepared,
              std::array<int, kMaximumSlots>& slots) {
  const char* target = action.target.c_str();
  switch (action.kind) {
    case MountKind::kNamespace:
      return EnterNamespace(prepared);
    case MountKind::kOpen:
      return OpenSource(action, false, slots[action.slot]);
    case MountKind::kOpenReadOnly:
      return OpenSource(action, true, slots[action.slot]);
    case MountKind::kTmpfs:
      return CoverWithTmpfs(action, slots[action.slot]);
    case MountKind::kKeep:
      return KeepEntry(action, slots[action.slot]);
    case MountKind::kDirectory:
      return mkdir(target, action.mode) == 0 || errno == EEXIST;
    case MountKind::kFile:
      return MakeFile(action);
    case MountKind::kSymlink:
      return symlink(action.source.c_str(), target) == 0;
    case MountKind::kAttach:
      return move_mount(slots[action.slot], "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0;
    case MountKind::kRoot:
      return ChangeRoot(action);
  }
  return false;
}

[[noreturn]] void Fail(const Prepared& prepared, Failure::Stage stage, int index) {
  const Failure failure{stage, index, errno};
  const ssize_t written = write(prepared.failures.get(), &failure, sizeof(failure));
  _exit(written == sizeof(failure) ? 127 : 126);
}

void SetUp(const Prepared& prepared) {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  if (sigprocmask(SIG_SETMASK, &prepared.no_signals, nullptr) != 0 || setsid() < 0 ||
      dup2(prepared.null.get(), STDIN_FILENO) < 0 || dup2(prepared.log.get(), STDOUT_FILENO) < 0 ||
      dup2(prepared.log.get(), STDERR_FILENO) < 0) {
    Fail(prepared, Failure::Stage::kSetup, 0);
  }
  // Set close-on-exec on files that were opened without it. Kernels before 5.11 cannot do this, but
  // few files are opened without close-on-exec.
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
}

// Makes the kernel kill this process when the parent dies. Call this after the mounts, because
// entering a user namespace clears the death signal.
void DieWithParent(const Prepared& prepared) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(prepared, Failure::Stage::kSetup, 0);
  // If the parent died before the death signal was set, the signal will never arrive, so exit now.
  if (getppid() != prepared.parent) _exit(126);
}

[[noreturn]] void RunChild(const Prepared& prepared) {
  SetUp(prepared);
  std::array<int, kMaximumSlots> slots{};
  int index = 0;
  for (const MountAction& action : prepared.plan.mounts) {
    if (!CarryOut(action, prepared, slots)) Fail(prepared, Failure::Stage::kMount, index);
    ++index;
  }
  DieWithParent(prepared);
  if (chdir(prepared.plan.working_dir.c_str()) != 0) Fail(prepared, Failure::Stage::kWorkingDir, 0);
  int error = ENOENT;
  for (const char* program : prepared.programs) {
    execve(program, const_cast<char**>(prepared.arguments.data()),
           const_cast<char**>(prepared.environment.data()));
    // As in a shell, an error for a file that exists but cannot be executed takes precedence over
    // the error for missing files.
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
  }
  errno = error;
  Fail(prepared, Failure::Stage::kExec, 0);
}

// --- In the parent. ----------------------------------------------------------------------------

std::string ExplainMount(const MountAction& action) {
  if (action.kind != MountKind::kNamespace) return action.purpose;
  return StrCat(action.purpose,
                ": a private mount namespace is not permitted (run as root or allow user "
                "namespaces)");
}

Status Explain(const LaunchPlan& plan, const Failure& failure) {
  switch (failure.stage) {
    case Failure::Stage::kMount:
      return ErrnoStatus(failure.error, ExplainMount(plan.mounts[failure.index]));
    case Failure::Stage::kWorkingDir:
      return ErrnoStatus(failure.error, StrCat("workingDir ", plan.working_dir));
    case Failure::Stage::kExec:
      return ErrnoStatus(failure.error, StrCat("command \"", plan.arguments[0], "\""));
    case Failure::Stage::kSetup:
      break;
  }
  return ErrnoStatus(failure.error, StrCat("starting \"", plan.arguments[0], "\""));
}

StatusOr<FileDescriptor> Open(const char* path, int flags) {
  FileDescriptor file(open(path, flags | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, StrCat("open ", path));
  return file;
}

Status ReadFailure(const LaunchPlan& plan, int fd, pid_t child) {
  Failure failure;
  ssize_t count = 0;
  do {
    count = read(fd, &failure, sizeof(failure));
  } while (count < 0 && errno == EINTR);
  if (count == 0) return OkStatus();
  waitpid(child, nullptr, 0);
  return count == sizeof(failure) ? Explain(plan, failure)
                                  : Internal("the launch of a process broke off");
}

}  // namespace

StatusOr<Process> Launch(const LaunchPlan& plan) {
  if (plan.programs.empty() || plan.arguments.empty())
    return InvalidArgument("there is no command");
  Prepared prepared(plan);
  sigemptyset(&prepared.no_signals);
  ASSIGN_OR_RETURN(prepared.null, Open("/dev/null", O_RDONLY));
  ASSIGN_OR_RETURN(prepared.log, Open(plan.log_path.c_str(), O_WRONLY | O_APPEND));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  const FileDescriptor read_end(ends[0]);
  prepared.failures = FileDescriptor(ends[1]);
  prepared.parent = getpid();

  Process process;
  process.pid =
      _Fork();  // skips the fork handlers of libraries, which are for children that do not exec
  if (process.pid < 0) return ErrnoStatus(errno, "fork");
  if (process.pid == 0) RunChild(prepared);
  prepared.failures.reset();
  RETURN_IF_ERROR(ReadFailure(plan, read_end.get(), process.pid));
  process.pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!process.pidfd.valid()) {
    const Status status = ErrnoStatus(
        errno, "pidfd_open, which needs Linux 5.3 or newer, and a container that permits it");
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
    return status;
  }
  return process;
}

StatusOr<Exit> Collect(const Process& process) {
  int status = 0;
  // Kill the group before reaping the process: until it is reaped, neither its ID nor the group's
  // can be reused.
  siginfo_t info{};
  if (waitid(P_PID, process.pid, &info, WEXITED | WNOWAIT) != 0)
    return ErrnoStatus(errno, "waitid");
  SignalGroup(process, SIGKILL);
  if (waitpid(process.pid, &status, 0) != process.pid) return ErrnoStatus(errno, "waitpid");
  if (WIFSIGNALED(status)) return Exit{128 + WTERMSIG(status), WTERMSIG(status)};
  return Exit{WEXITSTATUS(status), 0};
}

void SignalGroup(const Process& process, int signal) {
  // Process IDs up to 1 are invalid: kill(-1) would signal all processes, and kill(0) this
  // process's own group.
  ENFORCE(process.pid > 1, "a process to signal has been started");
  kill(-process.pid, signal);
}

}  // namespace tfjob::process
