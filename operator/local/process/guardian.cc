#include "operator/local/process/guardian.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace tfjob::process {
namespace {

// Represents a message to the guardian.
struct Word {
  bool protect = false;
  pid_t group = 0;
};

constexpr size_t kMaximumGroups = 8192;
// The maximum number of files to close if there is no /proc to list the open ones.
constexpr long kMostFiles = 1 << 20;

// Runs the guardian: processes the messages, and when the program has exited, kills the protected
// groups. The guardian is a forked process that never calls exec, so this function uses only system
// calls and static memory.
[[noreturn]] void Watch(int socket) {
  static std::array<pid_t, kMaximumGroups> groups;
  size_t count = 0;
  Word word;
  for (;;) {
    const ssize_t got = read(socket, &word, sizeof(word));
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(word)) break;
    if (word.protect && count < groups.size()) groups[count++] = word.group;
    if (!word.protect) {
      count = static_cast<size_t>(std::remove(groups.begin(), groups.begin() + count, word.group) -
                                  groups.begin());
    }
  }
  for (size_t i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  _exit(0);
}

// Closes all files above standard input one by one. Does not allocate, because another thread may
// have held the allocator's lock when this process was forked.
void CloseEach() {
  const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  if (folder < 0) {
    const auto limit = static_cast<int>(std::min<long>(sysconf(_SC_OPEN_MAX), kMostFiles));
    for (int fd = 1; fd < limit; ++fd) close(fd);
    return;
  }
  alignas(dirent64) static std::array<char, 4096> buffer;
  for (long got; (got = syscall(SYS_getdents64, folder, buffer.data(), buffer.size())) > 0;) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      const int fd = atoi(entry->d_name);  // 0 for "." and ".."
      if (fd > 0 && fd != folder) close(fd);
    }
  }
  close(folder);
}

// Closes every file except the socket, which becomes standard input. Otherwise, for example, the
// guardian might keep the write end of a pipe open, and the reader of the pipe would never reach
// the end of the file.
int KeepOnly(int fd) {
  dup2(fd, 0);
  // Linux before 5.9 lacks close_range, and some containers forbid the call.
  if (close_range(1, ~0U, 0) != 0) CloseEach();
  return 0;
}

}  // namespace

StatusOr<std::unique_ptr<Guardian>> Guardian::Create() {
  int ends[2];
  // This type of socket preserves the boundaries of messages and, unlike a pipe, can be written
  // without SIGPIPE.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "socketpair");
  }
  const FileDescriptor read_end(ends[0]);
  std::unique_ptr<Guardian> guardian(new Guardian);
  guardian->socket_ = FileDescriptor(ends[1]);
  guardian->pid_ = _Fork();
  if (guardian->pid_ < 0) return ErrnoStatus(errno, "fork");
  if (guardian->pid_ == 0) {
    setsid();  // keeps a Ctrl-C on the terminal from reaching the guardian
    signal(SIGTERM, SIG_IGN);
    Watch(KeepOnly(read_end.get()));
  }
  return guardian;
}

Guardian::~Guardian() {
  if (pid_ < 0) return;
  socket_.reset();
  waitpid(pid_, nullptr, 0);
}

// If the guardian was killed, the send fails, and its groups are no longer protected.
void Guardian::Protect(pid_t group) {
  const Word word{true, group};
  if (send(socket_.get(), &word, sizeof(word), MSG_NOSIGNAL) < 0) return;
}

void Guardian::Release(pid_t group) {
  const Word word{false, group};
  if (send(socket_.get(), &word, sizeof(word), MSG_NOSIGNAL) < 0) return;
}

}  // namespace tfjob::process
