#include "operator/local/process/guardian.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tfjob::process {
namespace {

// A message to the guardian.
struct Word {
  bool protect = false;
  pid_t group = 0;
};

constexpr size_t kMaximumGroups = 8192;

// Runs in the guardian, which is forked but never execs, so it uses only system calls and
// static memory.
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

// Closes every file except the socket. Otherwise the guardian might keep open, for example, the
// write end of a pipe, and the reader would never see end-of-file.
int KeepOnly(int fd) {
  dup2(fd, 0);
  close_range(1, ~0U, 0);
  return 0;
}

}  // namespace

StatusOr<std::unique_ptr<Guardian>> Guardian::Create() {
  int ends[2];
  // A socket that preserves the boundaries of messages. Unlike a pipe, it can be written without
  // SIGPIPE.
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

// If the guardian was killed, sending fails and its groups are no longer protected.
void Guardian::Protect(pid_t group) {
  const Word word{true, group};
  if (send(socket_.get(), &word, sizeof(word), MSG_NOSIGNAL) < 0) return;
}

void Guardian::Release(pid_t group) {
  const Word word{false, group};
  if (send(socket_.get(), &word, sizeof(word), MSG_NOSIGNAL) < 0) return;
}

}  // namespace tfjob::process
